// The agent is root, and so is the command line on a root installation; an instance's tree belongs to a stranger. So every
// file of theirs that calls the file system, or starts a program with its own rights, stands here with the calls it makes
// and where it makes them: a new call is a decision, not a slip. What happens inside an instance's tree goes through
// apps/agent/src/host/tree.ts, or is done by a program that runs as the instance's user.
//
// What a reading of the source cannot see: on what path a call is made, and what a listed program is told to do; that
// `user` is null or the agent's own when a command is started; a program that is handed on as a value in some other way
// than by an import (that of a listed function is `*`), and what a package of others calls. What packages/host does with a
// file that it is given the path of counts as a call of the file system of who gives it.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { startedPrograms } from './started-programs.mjs'

/** Where root may act by path or by descriptor, and why that is safe. */
const places = {
  door: 'the door itself: as the owner, or opened without following links',
  descriptor: 'what the door has opened',
  kernel: 'files of the kernel and of the system’s configuration',
  state: 'the agent’s own state and secrets, which nobody else can reach',
  outer: 'names in directories that only root can change, around the trees of instances',
  engine: 'the engine’s prefix',
  home: 'FLOE_HOME: its configuration, secrets and logs, which only who runs the command can change',
  leaf: 'a name in another user’s directory, which is removed, replaced or read, and never followed',
  given: 'a file named on the command line, read with the caller’s own rights',
  checkout: 'the checkout and the caches, which belong to who builds',
  trial: 'throw-away directories of benchmarks and suites',
  system: 'programs that ask or change the system itself: users, packages, services, locks',
  search: 'a search through everything that follows no link and opens no file',
  starter: 'the function that starts programs; who calls it is listed',
  own: 'our own programs, on what is ours',
  client: 'a program of the engine that talks to a server by its socket',
  owner: 'a program that runs as the user whose directory it acts in',
  caller: 'where who calls it says, and is listed for it',
}

/** File of the agent → where, and the calls it makes of node:fs. */
const agentCalls = {
  'agent.ts': ['state', 'chmodSync mkdirSync'],
  'engine/cluster/member-files.ts': ['outer', 'removeFile replaceFile'],
  'engine/creation/copy-by-reflink.ts': ['outer', 'lstatSync'],
  'engine/directory/found-directory.ts': ['outer', 'lstatSync statSync'],
  'engine/creation/initialise.ts': ['outer', 'readdirSync renameSync syncDirectory'],
  'engine/instances.ts': ['outer', 'removeUnfinished rmSync'],
  'engine/libraries/builtin-modules.ts': ['engine', 'existsSync readFileSync'],
  'engine/limits/memory-kills.ts': ['state', 'mkdirSync readFileSync replaceFile'],
  'engine/page-repair/extension.ts': ['engine', 'existsSync'],
  'engine/process/build.ts': ['engine', 'realpathSync'],
  'engine/process/instance-socket.ts': [
    'outer',
    'chmodSync lchownSync lstatSync mkdirSync readlinkSync rmSync symlinkSync',
  ],
  'engine/process/server-log.ts': ['descriptor', 'closeSync fstatSync readSync'],
  'engine/registry/registration-copy.ts': [
    'outer',
    'closeSync fstatSync lstatSync readFileSync readdirSync replaceFile',
  ],
  'engine/registry/registry.ts': [
    'state',
    'existsSync mkdirSync readFileSync readdirSync renameSync replaceFile rmSync syncDirectory',
  ],
  'engine/restore/copy-backup.ts': ['outer', 'statfsSync'],
  'engine/restore/restore-place.ts': ['outer', 'readdirSync'],
  'engine/settings/accepted-files.ts': ['state', 'mkdirSync readFileSync replaceFile rmSync'],
  'engine/settings/trial-place.ts': ['outer', 'lstatSync readdirSync rmdirSync unlinkSync'],
  'engine/settings/watched-files.ts': ['door', 'lstatSync'],
  'engine/wal/compare-histories.ts': ['descriptor', 'closeSync readSync'],
  'engine/wal/kept-aside.ts': ['outer', 'readdirSync removeFile replaceFile'],
  'enrol.ts': ['state', 'mkdirSync readFileSync replaceFile rmSync'],
  'host/brought-packages.ts': [
    'state',
    'closeSync fstatSync fsyncSync lstatSync mkdirSync openSync readdirSync renameSync rmSync sha256OfFile syncDirectory writeSync',
  ],
  'host/disks.ts': ['kernel', 'readFileSync realpathSync statSync statfsSync'],
  // the log that dpkg's unit writes beside the packages
  'host/dpkg.ts': ['state', 'existsSync readFileSync'],
  'host/engine-user.ts': ['kernel', 'readFileSync'],
  'host/facts.ts': ['kernel', 'readFileSync'],
  'host/installed-packages.ts': ['kernel', 'existsSync lstatSync readFileSync statSync'],
  'host/instance-users.ts': [
    'state',
    'chmodSync createFile existsSync lstatSync mkdirSync readFileSync readdirSync replaceFile rmSync unlinkSync',
  ],
  'host/kernel-log.ts': ['kernel', 'closeSync openSync readSync'],
  'host/limits/cgroup-systemd.ts': ['kernel', 'lchownSync'],
  'host/limits/choose.ts': ['kernel', 'readFileSync'],
  'host/limits/device.ts': ['leaf', 'lstatSync opendirSync readFileSync readlinkSync statSync'],
  'host/limits/group-files.ts': ['kernel', 'closeSync lstatSync mkdirSync openSync rmdirSync writeSync'],
  'host/owned-files.ts': [
    'door',
    'chmodSync closeSync fstatSync lchownSync lstatSync mkdirSync readDescriptor readSync statfsSync',
  ],
  'host/supervise-detached.ts': ['outer', 'closeSync openSync rmSync writeFileSync'],
  'host/supervise-systemd.ts': ['outer', 'mkdirSync rmSync writeFileSync'],
  'host/tree.ts': [
    'door',
    'closeSync fstatSync lchownSync lstatSync openSync opendirSync readdirSync realpathSync rmdirSync unlinkSync',
  ],
  'identity.ts': ['state', 'readFileSync replaceFile'],
  'installation.ts': ['state', 'readConfigurationFile readSecretFile'],
  'sampler/checkpoint-follower.ts': ['descriptor', 'closeSync fstatSync lstatSync readSync'],
  'sampler/checkpoint-store.ts': ['state', 'appendFileSync mkdirSync replaceFile statSync truncateSync'],
  'sampler/ring.ts': [
    'state',
    'closeSync fstatSync mkdirSync openSync readSync readdirSync rmSync writeSync',
  ],
  'sampler/sampler.ts': ['outer', 'statfsSync'],
  'sampler/stall-store.ts': ['state', 'appendFileSync mkdirSync replaceFile'],
  'tasks/instance/adopt-instance.ts': ['engine', 'existsSync'],
  'tasks/instance/delete-instance.ts': ['outer', 'readdirSync renameSync syncDirectory'],
  'tasks/instance/register-instance.ts': ['engine', 'existsSync'],
  'tasks/instance/separate-instance.ts': ['outer', 'lstatSync'],
  'tasks/instance/upgrade-instance.ts': ['engine', 'existsSync'],
  'tasks/runner/store.ts': [
    'state',
    'appendFileSync existsSync mkdirSync readFileSync readdirSync renameSync replaceFile rmSync statSync',
  ],
  'tasks/standby/clone-standby.ts': ['outer', 'removeFile renameSync statfsSync syncDirectory'],
  'tasks/standby/keep-aside.ts': ['outer', 'renameSync statfsSync syncDirectory'],
  'tasks/standby/prepare-standby.ts': ['engine', 'existsSync'],
  'tasks/standby/rewind-instance.ts': ['outer', 'removeFile renameSync replaceFile syncDirectory'],
}

/** File of the agent → why, and the programs it starts with the agent's own rights. */
const agentPrograms = {
  // dpkg, dpkg-deb and dpkg-query on files of root's own, systemd-run and systemctl for the unit in which dpkg works
  'host/dpkg.ts': ['system', '(program)'],
  // reads what the kernel says and the sizes of file systems; changes nothing as it is called there
  'host/host-check.ts': ['own', '(program)'],
  'host/installed-packages.ts': ['system', 'dpkg', 'dpkg-query'],
  'host/instance-users.ts': ['system', 'flock', 'getent', 'ipcrm'],
  'host/limits/cgroup-systemd.ts': ['system', '*'],
  'host/run-command.ts': ['starter', '(program)'],
  // a shell that writes its pid into the kernel’s files and becomes the engine, as the instance’s user
  'host/supervise-detached.ts': ['owner', '(file)'],
  // given to the caller of the service manager, so that tests can replace it
  'host/supervise-systemd.ts': ['system', '*'],
  'host/tree.ts': ['door', '(program)'],
  'host/uids-with-files.ts': ['search', '/bin/sh'],
}

/** File of the command line → where, and the calls it makes of node:fs. */
const cliCalls = {
  'backup/encrypted-file.ts': [
    'given',
    'closeSync existsSync fstatSync fsyncSync linkSync openSync read readSync renameSync rmSync syncDirectory write',
  ],
  'backup/make-backup.ts': ['given', 'closeSync existsSync fstatSync openSync rmSync'],
  'backup/pending-restore.ts': [
    'home',
    'closeSync existsSync fsyncSync mkdirSync openSync readFileSync renameSync replaceFile rmSync syncDirectory writeSync',
  ],
  'bench/agent-memory.ts': ['trial', 'readFileSync readlinkSync'],
  'bench/bench.ts': ['checkout', 'readFileSync readdirSync writeFileSync'],
  'bench/chaos/faults.ts': ['trial', 'existsSync rmSync'],
  'bench/chaos/hosts-in-namespaces.ts': [
    'trial',
    'chmodSync existsSync mkdirSync mkdtempSync readFileSync readdirSync readlinkSync rmSync statSync statfsSync truncateSync writeFileSync',
  ],
  'bench/chaos/installation-on-hosts.ts': ['trial', 'writeFileSync'],
  'bench/chaos/story.ts': ['home', 'appendFileSync mkdirSync'],
  'bench/chaos/users-of-a-home.ts': ['trial', 'readFileSync readdirSync rmSync'],
  'bench/fleet.ts': ['trial', 'mkdtempSync rmSync'],
  'bench/loop-device.ts': ['trial', 'chmodSync existsSync mkdirSync mkdtempSync readFileSync rmSync'],
  'bench/memory-map.ts': ['kernel', 'readFileSync readlinkSync'],
  'bench/neighbours.ts': ['trial', 'mkdtempSync readFileSync readdirSync rmSync'],
  'bench/private-installation.ts': ['trial', 'chmodSync mkdtempSync readFileSync rmSync'],
  'bench/switchover.ts': ['outer', 'statSync'],
  'bench/synchronous-commit.ts': ['trial', 'mkdtempSync readFileSync readdirSync rmSync'],
  'command/agent.ts': ['home', 'existsSync'],
  'command/host-packages.ts': ['given', 'closeSync openSync readSync readdirSync sha256OfFile statSync'],
  'command/status.ts': ['kernel', 'readFileSync'],
  'console/socket.ts': ['outer', 'lstatSync'],
  'control-database/control.ts': ['home', 'closeSync openSync'],
  'control-database/external.ts': ['given', 'existsSync readFileSync replaceFile'],
  'control-database/initialise.ts': [
    'outer',
    'chmodSync existsSync lchownSync lstatSync mkdirSync readRegularFile renameSync replaceFile rmSync rmdirSync',
  ],
  'installation/boot-unit.ts': ['kernel', 'existsSync readFileSync replaceFile rmSync'],
  'installation/directories.ts': ['outer', 'chmodSync existsSync lchownSync lstatSync statfsSync'],
  'installation/home.ts': [
    'home',
    'existsSync mkdirSync readConfigurationFile readFileSync readSecretFile replaceFile',
  ],
  'installation/instances.ts': ['outer', 'existsSync readRegularFile readdirSync'],
  'installation/os-user.ts': ['kernel', 'readFileSync'],
  'installation/own-files.ts': ['door', 'existsSync lstatSync readdirSync replaceFile rmSync rmdirSync'],
  'installation/package.ts': ['checkout', 'existsSync readFileSync realpathSync'],
  'installation/ports.ts': ['kernel', 'readFileSync readdirSync readlinkSync'],
  'installation/programs.ts': [
    'outer',
    'cpSync existsSync lstatSync mkdirSync mkdtempSync readFileSync readdirSync readlinkSync renameSync rmSync symlinkSync',
  ],
  'installation/secrets.ts': ['leaf', 'chmodSync readRegularFile replaceFile rmSync'],
  'process/postmaster.ts': ['outer', 'lstatSync'],
  'process/records.ts': ['home', 'readFileSync replaceFile rmSync'],
  'progress/durations.ts': ['home', 'readFileSync replaceFile'],
  'progress/progress.ts': ['home', 'appendFileSync'],
  'progress/run-log.ts': ['home', 'closeSync openSync'],
  'read-secret.ts': ['given', 'readFileSync'],
  'start.ts': ['checkout', 'existsSync'],
  'suite/engine-suite-key.ts': ['checkout', 'lstatSync readFileSync readlinkSync'],
  'suite/end-programs.ts': ['kernel', 'readFileSync'],
  'suite/hostile-suite.ts': ['trial', 'existsSync mkdtempSync readFileSync rmSync'],
  'suite/infra-tools.ts': ['checkout', 'existsSync globSync readFileSync'],
  'suite/journeys-suite.ts': ['trial', 'existsSync mkdtempSync readFileSync rmSync'],
  'suite/quick-files.ts': ['checkout', 'globSync'],
  'suite/readme-suite.ts': ['checkout', 'existsSync readFileSync readdirSync'],
  'suite/remembered-runs.ts': ['checkout', 'readFileSync replaceFile'],
  'suite/run-suites.ts': ['home', 'appendFileSync readFileSync'],
  'suite/static-suites.ts': ['checkout', 'readFileSync'],
  'suite/suite.ts': ['home', 'appendFileSync'],
  'suite/temporary-directory.ts': ['trial', 'chmodSync mkdtempSync readFileSync rmSync'],
  'suite/vitest-report.ts': ['trial', 'writeFileSync'],
  'suite/vitest-suites.ts': ['trial', 'cpSync existsSync mkdtempSync readFileSync rmSync'],
  'suite/workspaces.ts': ['checkout', 'globSync readFileSync'],
  'supervise/main.ts': ['home', 'openSync writeSync'],
  'supervise/rotate-logs.ts': [
    'home',
    'copyFileSync existsSync readdirSync renameSync rmSync statSync truncateSync',
  ],
  'supervise/spawn.ts': ['home', 'closeSync openSync'],
  'supervise/start.ts': ['home', 'closeSync openSync'],
  'up/agent-host.ts': ['home', 'existsSync mkdirSync'],
  'up/answers.ts': ['home', 'closeSync fstatSync openSync readFileSync readSync'],
  'up/system-packages.ts': ['kernel', 'readFileSync'],
  'up/up.ts': ['home', 'existsSync readdirSync'],
  'up/workspace-build.ts': ['checkout', 'existsSync readFileSync readdirSync rmSync statSync writeFileSync'],
}

/** File of the command line → why, and the programs it starts. Whose rights they get is in their options, which are not read. */
const cliPrograms = {
  'backup/make-backup.ts': [
    'client',
    "(join(installation.enginePrefix, 'bin/pg_dump'))",
    '(process.execPath)',
  ],
  'bench/agent-memory.ts': ['own', '(node)'],
  'bench/bench.ts': ['own', "(join(engineBench(), 'run'))"],
  'bench/chaos/faults.ts': ['system', 'ps'],
  'bench/chaos/hosts-in-namespaces.ts': ['system', '(file as string)', '(file)', 'fsfreeze', 'sh', 'umount'],
  'bench/chaos/installation-on-hosts.ts': ['own', '(file as string)'],
  'bench/chaos/users-of-a-home.ts': ['system', 'groupdel', 'userdel'],
  'bench/fleet.ts': ['client', '(process.execPath)', '(this.#psql)'],
  'bench/monitoring.ts': ['client', '(pgbench)', "(program('pgbench'))", '(psql)'],
  'bench/loop-device.ts': ['system', '(file)', '(program)', 'umount'],
  'bench/neighbours.ts': ['client', "(join(this.#prefix, 'bin', program))"],
  'bench/private-installation.ts': ['own', "(join(checkoutDirectory(), 'floe'))"],
  'bench/psql-session.ts': ['client', '(file as string)'],
  'bench/switchover.ts': ['owner', '(file as string)', "(this.program('psql'))"],
  'bench/synchronous-commit.ts': ['client', "(join(enginePrefix, 'bin', 'pgbench'))"],
  'command/engine.ts': ['own', '(tool)'],
  // reads what packages say of themselves
  'command/host-packages.ts': ['given', 'dpkg-deb'],
  'control-database/control.ts': ['owner', '(program as string)'],
  'control-database/external.ts': ['own', '(process.execPath)'],
  // psql as a client, the others as the control database's user
  'control-database/initialise.ts': [
    'owner',
    "(join(installation.enginePrefix, 'bin/initdb'))",
    "(join(installation.enginePrefix, 'bin/postgres'))",
    "(join(installation.enginePrefix, 'bin/psql'))",
  ],
  'control-database/load-dump.ts': [
    'client',
    "(join(installation.enginePrefix, 'bin/pg_restore'))",
    "(join(installation.enginePrefix, 'bin/psql'))",
    '(process.execPath)',
  ],
  'installation/boot-unit.ts': ['system', 'systemctl', 'systemd-run'],
  'installation/os-user.ts': ['system', '(file)', 'getent', 'id', 'test'],
  'installation/own-files.ts': ['door', '(treeProgram())'],
  'installation/programs.ts': ['outer', 'chmod'],
  'process/postmaster.ts': ['owner', '/bin/sh'],
  'run-program.ts': ['starter', '(file)'],
  'suite/engine-suite-key.ts': ['system', '(program)'],
  'suite/engine-suite.ts': ['own', '(tool())'],
  'suite/readme-suite.ts': ['checkout', 'git'],
  'suite/static-suites.ts': ['checkout', 'git'],
  'suite/suite.ts': ['own', '(file)'],
  'suite/temporary-directory.ts': ['system', 'chattr'],
  'supervise/spawn.ts': ['own', '(file as string)'],
  'supervise/start.ts': ['own', '(process.execPath)'],
  'up/agent-host.ts': ['own', '(process.execPath)'],
  'up/engine.ts': ['own', '(tool())'],
  'up/lock.ts': ['system', 'flock'],
  'up/migrations.ts': ['own', '(process.execPath)'],
  'up/system-packages.ts': [
    'system',
    "(join(checkoutDirectory(), 'engine/tools/engine'))",
    'apt-get',
    'dpkg-query',
  ],
  'up/workspace-build.ts': ['checkout', "(join(checkout, 'node_modules/.bin/turbo'))"],
}

/** File of packages/host → where, and the calls it makes of node:fs: one place for all, audited once. */
const hostCalls = {
  'control-groups.ts': ['kernel', 'closeSync lstatSync openSync readSync'],
  'kernel-file.ts': ['kernel', 'closeSync openSync readSync'],
  'process-facts.ts': ['kernel', 'readdirSync readlinkSync statSync'],
  'regular-file.ts': ['caller', 'closeSync createReadStream fstatSync openSync readSync'],
  'replace-file.ts': [
    'caller',
    'closeSync fchmodSync fchownSync fsyncSync linkSync lstatSync openSync readdirSync renameSync rmSync statSync writeSync',
  ],
}

const rooms = [
  { folder: 'packages/host/src', calls: hostCalls },
  { folder: 'apps/agent/src', calls: agentCalls, programs: agentPrograms },
  { folder: 'apps/cli/src', calls: cliCalls, programs: cliPrograms },
]

const importing =
  /(?:import|export)\s+(?:type\s+)?(\{[^}]*\}|\*(?:\s+as\s+\w+)?|\w+)\s+from\s+'(?:node:fs(?:\/promises)?|@floe\/host\/(?:regular-file|replace-file|configuration))'/g

/** What those modules export that touches no file. */
const harmless = new Set(['constants', 'isUnfinished', 'notAFile'])

/**
 * Names that a source imports from node:fs, or from what packages/host has in its place; `*` where it imports all of it.
 * Types and constants call nothing.
 */
export function fileCalls(source) {
  if (
    /\bimport\('(?:node:fs|@floe\/host\/(?:re|conf))|require\('(?:node:)?fs|from 'fs(?:\/promises)?'|process\.binding/.test(
      source,
    )
  )
    return ['*']
  return [...source.matchAll(importing)]
    .flatMap(([, names]) =>
      names.startsWith('{')
        ? names
            .slice(1, -1)
            .split(',')
            .map((name) => name.trim().split(/\s+as\s+/)[0])
        : ['*'],
    )
    .filter((name) => name !== '' && !harmless.has(name) && !name.startsWith('type '))
    .sort()
}

/** What goes round the door: `{ file, problem }` each, and how many files were looked at. */
export function roundTheDoor(root, given = rooms) {
  const seen = given.map((room) => lookThrough(root, room))
  return {
    broken: seen.flatMap((room) => room.broken),
    files: seen.reduce((sum, room) => sum + room.files, 0),
  }
}

function lookThrough(root, { folder, calls = {}, programs = {} }) {
  const directory = join(root, folder)
  const files = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !/\.(test|d)\.ts$/.test(entry.name))
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
  const broken = []
  for (const file of files) {
    const source = readFileSync(join(directory, file), 'utf8')
    const [place, text = ''] = calls[file] ?? []
    const [why, ...started] = programs[file] ?? []
    for (const name of [place, why])
      if (name !== undefined && !(name in places)) broken.push({ file, problem: `no such place: ${name}` })
    const listed = { calls: new Set(text.split(' ').filter(Boolean)), programs: new Set(started) }
    const made = { calls: fileCalls(source), programs: startedPrograms(source) }
    const more = (what) => made[what].filter((name) => !listed[what].has(name)).join(', ')
    const unused = (what) => [...listed[what]].filter((name) => !made[what].includes(name)).join(', ')
    if (more('calls'))
      broken.push({
        file,
        problem: `calls ${more('calls')} of the file system; inside an instance’s tree use host/tree.ts`,
      })
    if (more('programs'))
      broken.push({
        file,
        problem: `starts ${more('programs')} with its own rights; inside an instance’s tree give runCommand the user`,
      })
    if (unused('calls')) broken.push({ file, problem: `does not call ${unused('calls')} any more` })
    if (unused('programs')) broken.push({ file, problem: `does not start ${unused('programs')} any more` })
  }
  for (const file of new Set([...Object.keys(calls), ...Object.keys(programs)]))
    if (!files.includes(file)) broken.push({ file, problem: 'is not there any more' })
  return { broken: broken.map((b) => ({ ...b, file: `${folder}/${b.file}` })), files: files.length }
}
