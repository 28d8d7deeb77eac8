// The agent is root, and an instance's tree belongs to a stranger. So every file of the agent that calls the file system
// stands here with the calls it makes and where it makes them: a new call is a decision, not a slip. What happens inside
// an instance's tree goes through apps/agent/src/host/tree.ts.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const AGENT = 'apps/agent/src'

/** Where root may act by path or by descriptor, and why that is safe. */
const places = {
  door: 'the door itself: as the owner, or opened without following links',
  descriptor: 'what the door has opened',
  kernel: 'files of the kernel and of the system’s configuration',
  state: 'the agent’s own state and secrets, which nobody else can reach',
  outer: 'names in directories that only root can change, around the trees of instances',
  engine: 'the engine’s prefix',
}

/** File → where, and the calls it makes. */
const calls = {
  'agent.ts': ['state', 'chmodSync mkdirSync'],
  'engine/builtin-modules.ts': ['engine', 'existsSync readFileSync'],
  'engine/initialise.ts': ['outer', 'existsSync readdirSync renameSync'],
  'engine/instance-socket.ts': [
    'outer',
    'chmodSync lchownSync lstatSync mkdirSync readlinkSync rmSync symlinkSync',
  ],
  'engine/instance.ts': ['door', 'lstatSync'],
  'engine/instances.ts': ['state', 'rmSync'],
  'engine/known-settings.ts': ['state', 'mkdirSync readFileSync rmSync'],
  'engine/registration-copy.ts': ['outer', 'closeSync fstatSync lstatSync readFileSync readdirSync'],
  'engine/registry.ts': ['state', 'existsSync mkdirSync readFileSync readdirSync renameSync rmSync'],
  'engine/server-log.ts': ['descriptor', 'closeSync fstatSync readSync'],
  'engine/trial-place.ts': ['outer', 'lstatSync readdirSync rmdirSync unlinkSync'],
  'enrol.ts': ['state', 'mkdirSync readFileSync rmSync'],
  'host/disks.ts': ['kernel', 'readFileSync realpathSync statfsSync'],
  'host/durable-files.ts': [
    'door',
    'chmodSync closeSync fchownSync fstatSync fsyncSync lchownSync lstatSync mkdirSync openSync readFileSync renameSync rmSync writeSync',
  ],
  'host/engine-user.ts': ['kernel', 'readFileSync'],
  'host/facts.ts': ['kernel', 'readFileSync'],
  'host/instance-users.ts': [
    'state',
    'closeSync existsSync lstatSync mkdirSync openSync readFileSync readdirSync rmSync unlinkSync writeFileSync',
  ],
  'host/kernel-log.ts': ['kernel', 'closeSync openSync readSync'],
  'host/process-table.ts': ['kernel', 'readdirSync readlinkSync statSync'],
  'host/small-file.ts': ['descriptor', 'closeSync openSync readSync'],
  'host/supervise-detached.ts': ['outer', 'closeSync openSync rmSync writeFileSync'],
  'host/supervise-systemd.ts': ['outer', 'rmSync'],
  'host/supervision.ts': ['kernel', 'readFileSync'],
  'host/tree.ts': [
    'door',
    'closeSync fstatSync lchownSync lstatSync openSync opendirSync readdirSync realpathSync rmdirSync unlinkSync',
  ],
  'identity.ts': ['state', 'readFileSync'],
  'installation.ts': ['state', 'readFileSync'],
  'sampler/checkpoint-follower.ts': ['descriptor', 'closeSync fstatSync lstatSync readSync'],
  'sampler/checkpoint-store.ts': ['state', 'appendFileSync mkdirSync statSync truncateSync'],
  'sampler/ring.ts': [
    'state',
    'closeSync fstatSync mkdirSync openSync readSync readdirSync rmSync writeSync',
  ],
  'sampler/sampler.ts': ['outer', 'statfsSync'],
  'tasks/clone-standby.ts': ['outer', 'renameSync statfsSync'],
  'tasks/compare-histories.ts': ['descriptor', 'closeSync readSync'],
  'tasks/copy-by-reflink.ts': ['outer', 'lstatSync'],
  'tasks/create-instance.ts': ['engine', 'existsSync'],
  'tasks/delete-instance.ts': ['outer', 'readdirSync renameSync'],
  'tasks/page-repair.ts': ['engine', 'existsSync'],
  'tasks/prepare-standby.ts': ['engine', 'existsSync'],
  'tasks/rewind-instance.ts': ['outer', 'renameSync'],
  'tasks/task-store.ts': [
    'state',
    'appendFileSync existsSync mkdirSync readFileSync readdirSync renameSync rmSync statSync',
  ],
}

const importing = /import\s+(?:type\s+)?(\{[^}]*\}|\*\s+as\s+\w+|\w+)\s+from\s+'node:fs(?:\/promises)?'/g

/** Names that a source imports from node:fs; `*` where it imports all of it. Types and constants call nothing. */
export function fileCalls(source) {
  if (/\bimport\('node:fs|require\('(?:node:)?fs|from 'fs(?:\/promises)?'|process\.binding/.test(source))
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
    .filter((name) => name !== '' && name !== 'constants' && !name.startsWith('type '))
    .sort()
}

/** What goes round the door: `{ file, problem }` each, and how many files were looked at. */
export function roundTheDoor(root, table = calls) {
  const directory = join(root, AGENT)
  const files = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.ts$/.test(entry.name) && !/\.(test|d)\.ts$/.test(entry.name))
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
  const broken = []
  for (const file of files) {
    const made = fileCalls(readFileSync(join(directory, file), 'utf8'))
    const [place, text = ''] = table[file] ?? []
    if (place !== undefined && !(place in places)) broken.push({ file, problem: `no such place: ${place}` })
    const allowed = new Set(text.split(' ').filter(Boolean))
    const more = made.filter((name) => !allowed.has(name))
    if (more.length > 0)
      broken.push({
        file,
        problem: `calls ${more.join(', ')} of node:fs; inside an instance’s tree use host/tree.ts`,
      })
    const unused = [...allowed].filter((name) => !made.includes(name))
    if (unused.length > 0) broken.push({ file, problem: `does not call ${unused.join(', ')} any more` })
  }
  for (const file of Object.keys(table))
    if (!files.includes(file)) broken.push({ file, problem: 'is not there any more' })
  return { broken: broken.map((b) => ({ ...b, file: `${AGENT}/${b.file}` })), files: files.length }
}
