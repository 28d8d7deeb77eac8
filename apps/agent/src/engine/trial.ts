import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fault } from '@floe/domain'
import pg from 'pg'
import { makeOuterDirectory, makeOwnedDirectory, readOwnedFile, replaceFile } from '../host/durable-files'
import type { EngineUser } from '../host/engine-user'
import { endProcessesIn } from '../host/process-table'
import { engineEnvironment, identity, runCommand } from '../host/run-command'
import { formatConfiguration } from './configuration-file'
import type { InstanceLayout } from './layout'
import { Turns } from './turns'

export type TrialOptions = {
  prefix: string
  layout: InstanceLayout
  user: EngineUser
  /** Where throw-away data directories lie; one per engine, made once. */
  trialsDirectory: string
  /** The managed settings to try. */
  managed: ReadonlyMap<string, string>
  /** Names whose value has to be what the managed settings say. */
  names: readonly string[]
  signal?: AbortSignal | undefined
}

export type TrialSetting = { name: string; value: string | null; shown: string | null; source: string }
export type TrialResult =
  | { starts: true; settings: TrialSetting[] }
  /** What the engine said when it did not start. */
  | { starts: false; reason: string }

const TRIAL_DEADLINE_MS = 60_000
/** SQLSTATE of an engine that is still starting. */
const CANNOT_CONNECT_NOW = '57P03'

/**
 * Starts the instance's own binary with the instance's own configuration files, the managed one replaced, on a throw-away
 * data directory, and asks it what it made of them. It shares nothing with the instance: no port, no socket, no WAL,
 * no archive. This finds what no parser can: memory that is not there, libraries that do not load, settings that
 * contradict each other. One trial at a time in the whole agent.
 */
export function tryConfiguration(o: TrialOptions): Promise<TrialResult> {
  return trials.take(() => tryOnce(o), o.signal)
}

/** Without a bound: tasks are one an instance, and dry runs are bounded before they come here. */
const trials = new Turns()

async function tryOnce(o: TrialOptions): Promise<TrialResult> {
  o.signal?.throwIfAborted()
  const trial = await prepareTrial(o)
  endProcessesIn(trial.dataDirectory)
  rmSync(join(trial.dataDirectory, 'postmaster.pid'), { force: true })
  linkOwnFiles(o.layout.dataDirectory, trial.dataDirectory)
  const auto = readOwnedFile(o.layout.autoFile)
  replaceFile(join(trial.dataDirectory, 'postgresql.auto.conf'), auto ?? '', { owner: o.user })

  // beside the real files, so that relative includes of a person's own lines hold
  const managedFile = join(o.layout.dataDirectory, 'floe.conf.trial')
  const mainFile = join(o.layout.dataDirectory, 'postgresql.conf.trial')
  const main = readOwnedFile(o.layout.mainFile) ?? "include 'floe.conf'\n"
  replaceFile(managedFile, formatConfiguration(o.managed), { owner: o.user })
  replaceFile(
    mainFile,
    main.replace(/^(\s*include(?:_if_exists)?\s*=?\s*)'floe\.conf'/gm, "$1'floe.conf.trial'"),
    {
      owner: o.user,
    },
  )
  try {
    return await startTrial(o, trial, mainFile)
  } finally {
    endProcessesIn(trial.dataDirectory)
    rmSync(managedFile, { force: true })
    rmSync(mainFile, { force: true })
  }
}

/** Files in a data directory that say who it is; a trial has its own. */
const identityFiles =
  /^(PG_VERSION|backup_|current_logfiles|floe\.conf|logfile|pg_|postgresql\.|postmaster\.)|\.(signal|tmp)$/

/**
 * Files that settings name relative to the data directory (certificates, keys) are looked for in the trial's: there they
 * are links to the instance's own.
 */
function linkOwnFiles(from: string, to: string): void {
  for (const entry of readdirSync(to, { withFileTypes: true }))
    if (entry.isSymbolicLink()) rmSync(join(to, entry.name))
  for (const entry of readdirSync(from, { withFileTypes: true }))
    if (entry.isFile() && !identityFiles.test(entry.name) && !existsSync(join(to, entry.name)))
      symlinkSync(join(from, entry.name), join(to, entry.name))
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

type Trial = { directory: string; dataDirectory: string }

/** The throw-away data directory of this engine; made at its first trial. */
async function prepareTrial(o: TrialOptions): Promise<Trial> {
  makeOuterDirectory(o.trialsDirectory, o.user)
  const key = createHash('sha256')
    .update(`${o.prefix} ${initdbOptions.join(' ')}`)
    .digest('hex')
    .slice(0, 12)
  const directory = join(o.trialsDirectory, key)
  makeOuterDirectory(directory, o.user)
  const dataDirectory = join(directory, 'pgdata')
  if (existsSync(dataDirectory)) return { directory, dataDirectory }
  const unfinished = join(directory, 'pgdata.unfinished')
  endProcessesIn(unfinished)
  rmSync(unfinished, { recursive: true, force: true })
  makeOwnedDirectory(unfinished, o.user)
  const r = await runCommand(join(o.prefix, 'bin', 'initdb'), ['-D', unfinished, ...initdbOptions], {
    user: o.user,
    timeoutMs: 120_000,
    signal: o.signal,
  })
  if (r.status !== 0)
    throw fault('setting.no_trial', 'could not prepare a trial of the settings', { detail: r.stderr.trim() })
  renameSync(unfinished, dataDirectory)
  return { directory, dataDirectory }
}

async function startTrial(o: TrialOptions, trial: Trial, mainFile: string): Promise<TrialResult> {
  const socketDirectory = join(trial.directory, 's')
  makeOwnedDirectory(socketDirectory, o.user)
  const overrides = {
    config_file: mainFile,
    hba_file: join(trial.dataDirectory, 'pg_hba.conf'),
    ident_file: join(trial.dataDirectory, 'pg_ident.conf'),
    port: String(await freePort()),
    unix_socket_directories: socketDirectory,
    logging_collector: 'off',
    log_destination: 'stderr',
    log_min_messages: 'warning',
    lc_messages: 'C',
    archive_command: 'false',
    archive_library: '',
    fsync: 'off',
    autovacuum: 'off',
  }
  const names = o.names.map((n) => n.toLowerCase())
  const args = Object.entries(
    names.includes('listen_addresses') ? overrides : { ...overrides, listen_addresses: '' },
  ).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = spawn(join(o.prefix, 'bin', 'postgres'), ['-D', trial.dataDirectory, ...args], {
    cwd: trial.directory,
    env: engineEnvironment,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
    ...identity(o.user),
  })
  let said = ''
  let ended = false
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (said.length < 65_536) said += text
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
      const settings = await askTrial(socketDirectory, Number(overrides.port), names)
      if (settings) return settings
      await Promise.race([closed, delay(50)])
    }
    return { starts: false, reason: reasonOf(said) || 'It did not answer within a minute.' }
  } finally {
    if (!ended && child.pid) process.kill(child.pid, 'SIGQUIT')
    await Promise.race([closed, delay(10_000, undefined, { ref: false })])
  }
}

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

async function askTrial(socketDirectory: string, port: number, names: string[]): Promise<TrialResult | null> {
  const client = new pg.Client({
    host: socketDirectory,
    port,
    user: 'floe',
    database: 'postgres',
    connectionTimeoutMillis: 10_000,
    query_timeout: 10_000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    const r = await client.query<TrialSetting>(
      'select lower(name) as name, setting as value, current_setting(name, true) as shown, source from pg_settings where lower(name) = any ($1)',
      [names],
    )
    return { starts: true, settings: r.rows }
  } catch (error) {
    // the engine is up and turns everybody away, for instance because a library does not load
    const { code, message } = error as { code?: string; message: string }
    if (code !== undefined && /^[0-9A-Z]{5}$/.test(code) && code !== CANNOT_CONNECT_NOW)
      return { starts: false, reason: `New connections would fail: ${message}.` }
    return null
  } finally {
    await client.end().catch(() => {})
  }
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
