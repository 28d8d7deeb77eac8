import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fault, programSetting, programSettingNames } from '@floe/domain'
import { z } from 'zod'
import { confined } from '../../host/confined'
import type { EngineUser } from '../../host/engine-user'
import { makeOwnedDirectory, readOwnedFile } from '../../host/owned-files'
import { endProcessesIn } from '../../host/process-table'
import { engineEnvironment, runCommand } from '../../host/run-command'
import { removeTree, replaceInTree } from '../../host/tree'
import type { dataFiles } from '../directory/layout'
import { formatConfiguration } from './managed-file'
import { Turns } from './turns'

/** Where the trials of one instance lie: directories of root's own around what its user may change. */
export type TrialPlace = {
  /** Root's own directory that the trials' directory is made in: the instance's. */
  outer: string
  /** Directory for the throw-away engine's socket; its path is short, as those of sockets have to be. */
  socketDirectory: string
}

export type TrialOptions = {
  prefix: string
  /** The files of the instance; null where there is none yet and a new one's are taken. */
  files: ReturnType<typeof dataFiles> | null
  user: EngineUser
  place: TrialPlace
  /** The managed settings to try. */
  managed: ReadonlyMap<string, string>
  /** Names whose value has to be what the managed settings say. */
  names: readonly string[]
  signal?: AbortSignal | undefined
}

const TrialSetting = z.object({ name: z.string(), value: z.string().nullable(), source: z.string() })
export type TrialSetting = z.infer<typeof TrialSetting>
export type TrialResult =
  /** `log`: what it said until then; an instance's user may have written it. */
  | { starts: true; settings: TrialSetting[]; log: string }
  /** What the engine said when it did not start. */
  | { starts: false; reason: string }

const TRIAL_DEADLINE_MS = 60_000

/**
 * Starts the instance's own binary with the instance's own configuration files, the managed one replaced, on a throw-away
 * data directory, and asks it what it made of them. It shares nothing with the instance: no port, no socket, no WAL,
 * no archive; and nothing with any other instance: it runs as the instance's own user, in a directory of the instance's.
 * This finds what no parser can: memory that is not there, libraries that do not load, settings that contradict each
 * other. No command that a setting names is run. One trial at a time in the whole agent.
 */
export function tryConfiguration(o: TrialOptions): Promise<TrialResult> {
  return trials.take(() => {
    const work = tryOnce(o)
    const over = work.then(
      () => {},
      () => {},
    )
    running.set(o.place.outer, over)
    return work.finally(() => running.delete(o.place.outer))
  }, o.signal)
}

/** Without a bound: tasks are one an instance, and checks are bounded before they come here. */
const trials = new Turns()
const running = new Map<string, Promise<void>>()

/** Ends a trial that runs in an instance's directory and removes what it needs; the next one creates it again. */
export async function removeTrial(outer: string, user: EngineUser): Promise<void> {
  const over = running.get(outer)
  if (over) {
    endProcessesIn(join(outer, TRIALS))
    await over
  }
  await removeTree(join(outer, TRIALS), user)
}

/** The directory in an instance's own that its user's trials lie in. */
const TRIALS = 'trial'

async function tryOnce(o: TrialOptions): Promise<TrialResult> {
  o.signal?.throwIfAborted()
  const dataDirectory = await prepareTrial(o)
  const auto = o.files && readOwnedFile(o.files.autoFile)
  replaceInTree(join(dataDirectory, 'postgresql.auto.conf'), auto ?? '', o.user)

  // beside the real files, so that relative includes of a person's own lines hold
  const beside = o.files?.dataDirectory ?? dataDirectory
  const managedFile = join(beside, 'floe.conf.trial')
  const mainFile = join(beside, 'postgresql.conf.trial')
  const main = (o.files && readOwnedFile(o.files.mainFile)) ?? "include 'floe.conf'\n"
  replaceInTree(managedFile, formatConfiguration(o.managed), o.user)
  replaceInTree(
    mainFile,
    main.replace(/^(\s*include(?:_if_exists)?\s*=?\s*)'floe\.conf'/gm, "$1'floe.conf.trial'"),
    o.user,
  )
  try {
    return await startTrial(o, dataDirectory, mainFile)
  } finally {
    endProcessesIn(dataDirectory)
    await asUser(o, 'rm -f -- "$@"', [managedFile, mainFile])
  }
}

/** Segments of the size that instances have, because the limits of WAL settings follow from it; nobody but the agent's socket gets in. */
const initdbOptions = [
  '--auth-local=trust',
  '--auth-host=reject',
  '--username=floe',
  '--no-sync',
  '--no-instructions',
  '--locale=C',
]

/**
 * Makes the throw-away data directory of this engine at its first trial, and takes away what a former trial left. Files that
 * settings name relative to the data directory (certificates, keys) are looked for in the trial's: there they are links to
 * the instance's own, save those that say who a data directory is.
 */
const preparation = `
set -eu
umask 077
trial=$1; data=$2; shift 2
mkdir -p -- "$trial"
for other in "\${trial%/*}"/*; do
  [ "$other" = "$trial" ] || rm -rf --one-file-system -- "$other"
done
cd -- "$trial"
if [ ! -d pgdata ]; then
  rm -rf --one-file-system pgdata.unfinished
  "$@" -D "$trial/pgdata.unfinished" >/dev/null
  mv pgdata.unfinished pgdata
fi
rm -f pgdata/postmaster.pid
find pgdata -maxdepth 1 -type l -delete
[ -n "$data" ] || exit 0
rm -f -- "$data/floe.conf.trial" "$data/postgresql.conf.trial"
find "$data" -maxdepth 1 -type f -regextype posix-extended \
  ! -regex '.*/((PG_VERSION|backup_|current_logfiles|floe.conf|logfile|pg_|postgresql.|postmaster.)[^/]*|[^/]*.(signal|tmp))' \
  -exec sh -c 'for f; do [ -e "$0/\${f##*/}" ] || ln -s -- "$f" "$0/"; done' "$trial/pgdata" {} +
`

/** All that is done inside the trials' directory is done by its own user: a link planted there leads nowhere else. */
function asUser(o: Pick<TrialOptions, 'user' | 'signal'>, script: string, args: readonly string[]) {
  return runCommand('/bin/sh', ['-c', script, 'sh', ...args], { user: o.user, timeoutMs: 120_000 })
}

/** The throw-away data directory of this engine, ready for a trial. */
async function prepareTrial(o: TrialOptions): Promise<string> {
  const trials = join(o.place.outer, TRIALS)
  makeOwnedDirectory(trials, o.user)
  const key = createHash('sha256')
    .update(`${o.prefix} ${initdbOptions.join(' ')}`)
    .digest('hex')
    .slice(0, 12)
  const trial = join(trials, key)
  endProcessesIn(trials)
  const initdb = [join(o.prefix, 'bin', 'initdb'), ...initdbOptions]
  const r = await asUser(o, preparation, [trial, o.files?.dataDirectory ?? '', ...initdb])
  o.signal?.throwIfAborted()
  if (r.status !== 0)
    throw fault('setting.no_trial', 'could not prepare a trial of the settings', { detail: r.stderr.trim() })
  return join(trial, 'pgdata')
}

/** Commands that settings name are not run by a trial: these stand in for them. */
function withoutCommands(managed: ReadonlyMap<string, string>): Record<string, string> {
  const ofExtensions = [...managed.keys()].filter((n) => n.includes('.') && programSetting(n) === 'command')
  return {
    ...Object.fromEntries([...programSettingNames('command'), ...ofExtensions].map((name) => [name, ''])),
    archive_command: 'false',
    ssl_passphrase_command: NO_PASSPHRASE,
    archive_library: '',
  }
}

const NO_PASSPHRASE = 'false'

async function startTrial(o: TrialOptions, dataDirectory: string, mainFile: string): Promise<TrialResult> {
  const { socketDirectory } = o.place
  makeOwnedDirectory(socketDirectory, o.user)
  const overrides = {
    ...withoutCommands(o.managed),
    config_file: mainFile,
    hba_file: join(dataDirectory, 'pg_hba.conf'),
    ident_file: join(dataDirectory, 'pg_ident.conf'),
    unix_socket_directories: socketDirectory,
    unix_socket_permissions: '0700',
    unix_socket_group: '',
    logging_collector: 'off',
    log_destination: 'stderr',
    log_min_messages: 'warning',
    lc_messages: 'C',
    fsync: 'off',
    autovacuum: 'off',
    ...(o.names.some((n) => n.toLowerCase() === 'listen_addresses') ? {} : { listen_addresses: '' }),
  }
  try {
    const result = await startOnce(o, dataDirectory, overrides)
    // a key that is locked by a passphrase cannot be opened here: then all but TLS is tried
    if (result.starts || !result.reason.includes(`command "${NO_PASSPHRASE}" failed`)) return result
    return await startOnce(o, dataDirectory, { ...overrides, ssl: 'off' })
  } finally {
    await removeTree(socketDirectory, o.user)
  }
}

async function startOnce(
  o: TrialOptions,
  dataDirectory: string,
  overrides: Record<string, string>,
): Promise<TrialResult> {
  const port = await freePort()
  const args = Object.entries({ ...overrides, port: String(port) }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ])
  // it loads what the settings say: with no more rights than the instance itself has
  const [file, ...words] = confined(o.user, [join(o.prefix, 'bin', 'postgres'), '-D', dataDirectory, ...args])
  const child = spawn(file, words, {
    cwd: '/',
    env: engineEnvironment,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  })
  let said = ''
  let ended = false
  let heard = () => {}
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (said.length < 65_536) said += text
    heard()
  })
  const closed = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      said += error.message
      ended = true
      resolve()
    })
    child.once('close', () => {
      ended = true
      resolve()
    })
  })
  try {
    const deadline = performance.now() + TRIAL_DEADLINE_MS
    while (!ended && performance.now() < deadline) {
      o.signal?.throwIfAborted()
      if (said.includes(READY)) {
        const answer = await askTrial(o, port)
        if (answer) return answer.starts ? { ...answer, log: said } : answer
        await Promise.race([closed, delay(50)])
      } else {
        const words = new Promise<void>((resolve) => {
          heard = resolve
        })
        await Promise.race([closed, words, delay(250)])
      }
    }
    return { starts: false, reason: reasonOf(said) || 'It did not answer within a minute.' }
  } finally {
    if (!ended && child.pid) process.kill(child.pid, 'SIGQUIT')
    await Promise.race([closed, delay(10_000, undefined, { ref: false })])
  }
}

/** What the postmaster says when it lets clients in. */
const READY = 'database system is ready to accept connections'

/** A port nobody listens on; it also names the trial's socket. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}

const settingsSql = `select coalesce(json_agg(json_build_object('name', lower(name), 'value', setting, 'source', source)), '[]')
  from pg_settings where lower(name) in (select json_array_elements_text(:'names'));`

type Answer = { starts: true; settings: TrialSetting[] } | { starts: false; reason: string }

/**
 * Asks by psql and as the user: what answers at that socket is whatever the user lets answer there, and neither its words
 * nor their number can be trusted by a root agent. Null while it lets nobody in yet.
 */
async function askTrial(o: TrialOptions, port: number): Promise<Answer | null> {
  const { user, signal } = o
  const connection = ['-h', o.place.socketDirectory, '-p', String(port), '-U', 'floe', '-d', 'postgres']
  const names = o.names.map((n) => n.toLowerCase())
  const r = await runCommand(
    join(o.prefix, 'bin', 'psql'),
    ['-XAtqw', '-v', 'ON_ERROR_STOP=1', '-v', `names=${JSON.stringify(names)}`, ...connection],
    { user, signal, input: settingsSql, timeoutMs: 10_000 },
  )
  signal?.throwIfAborted()
  if (r.status === 0) return { starts: true, settings: z.array(TrialSetting).parse(JSON.parse(r.stdout)) }
  // the engine is up and turns everybody away, for instance because a library does not load
  const refusal = /FATAL: {2}(.*)/.exec(r.stderr)?.[1]
  if (!refusal || /starting up|not yet accepting/.test(refusal)) return null
  return { starts: false, reason: `New connections would fail: ${refusal}.` }
}

/** The engine's reason without its prefix: message, detail and hint of what was fatal. */
export function reasonOf(said: string): string {
  return said
    .split('\n')
    .map((line) => /\b(?:FATAL|ERROR|LOG|DETAIL|HINT|WARNING):\s+(.*)$/.exec(line)?.[1])
    .filter(
      (text): text is string =>
        Boolean(text) && !/^(?:database system is shut down|starting PostgreSQL)/.test(text as string),
    )
    .slice(-6)
    .map((text) => (/[.!?]$/.test(text) ? text : `${text}.`))
    .join(' ')
    .replaceAll('postgresql.conf.trial', 'postgresql.conf')
    .replaceAll('floe.conf.trial', 'floe.conf')
}
