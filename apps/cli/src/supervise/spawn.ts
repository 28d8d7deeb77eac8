import { spawn } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Installation, programHome } from '@floe/domain'
import { identify, isAlive, type ProcessIdentity } from '@floe/host/process'
import { startControlDatabase } from '../control-database/control'
import type { Home } from '../installation/home'
import { findUser, groupId, isRoot, withoutRoot } from '../installation/os-user'
import { isConfined, programDirectory } from '../installation/programs'
import {
  currentMark,
  PROCESS_VARIABLE,
  type ProcessName,
  type ProgramName,
  programs,
  runningProgram,
  writeRecord,
} from '../process/records'

export type Supervision = {
  home: Home
  checkout: string
  /** null on an enrolled host, which has no control database. */
  installation: Installation | null
  say: (event: string, fields?: Record<string, unknown>) => void
}

/** How often a process that is not our child is looked at. */
const LOOK_MS = 250

/** What a supervised process is to the one who restarts it: a pid, and one `close` when it is gone. */
export type Supervised = EventEmitter & {
  pid: number | undefined
  stdin: null
  stdout: null
  stderr: null
  send: never
}

function supervised(pid?: number): Supervised {
  return Object.assign(new EventEmitter(), {
    pid,
    stdin: null,
    stdout: null,
    stderr: null,
  }) as unknown as Supervised
}

/** A process always ends with this code here, so that it is started again whatever its own exit status was. */
const GONE = 1

function closeWhenGone(process: Supervised, identity: ProcessIdentity, gone: () => void): void {
  const timer = setInterval(() => {
    if (isAlive(identity)) return
    clearInterval(timer)
    gone()
    process.emit('close', GONE, null)
  }, LOOK_MS)
}

/** The environment of our programs: who they are stands in FLOE_HOME, everything else they read from there. */
export function programEnvironment(home: string, name: ProgramName): NodeJS.ProcessEnv {
  const kept = [
    'PATH',
    'HOME',
    'LANG',
    'TZ',
    'TMPDIR',
    'FLOE_CACHE',
    'NODE_EXTRA_CA_CERTS',
    'NEXT_TELEMETRY_DISABLED',
  ]
  return {
    ...Object.fromEntries(
      kept.filter((name) => process.env[name] !== undefined).map((name) => [name, process.env[name]]),
    ),
    // root's own is closed to a user of its own
    ...(isRoot() && isConfined(name) ? { HOME: home } : {}),
    FLOE_HOME: home,
    [PROCESS_VARIABLE]: name,
    NODE_ENV: 'production',
    ...programs[name].environment,
  }
}

/** How a program is started: as itself, or with nothing of root left but the group that may reach the control database. */
function commandOf(installation: Installation | null, name: ProgramName, words: string[]): string[] {
  const users = installation?.users
  if (!users || !isConfined(name)) return words
  const user = findUser(users[name])?.switchTo
  const group = groupId(users.group)
  if (!user || group === null)
    throw new Error(`user "${users[name]}" or group "${users.group}" does not exist`)
  return withoutRoot(user, group, words)
}

function startProgram({ home, checkout, installation, say }: Supervision, name: ProgramName): Supervised {
  const running = runningProgram(home, name)
  if (running !== null) {
    say('process.adopted', { name, pid: running.pid })
    writeRecord(home, name, running)
    const adopted = supervised(running.pid)
    closeWhenGone(adopted, running, () => say('process.ended', { name, pid: running.pid }))
    return adopted
  }
  const directory = programDirectory(checkout, installation, name)
  const ownHome = installation !== null && isConfined(name) ? programHome(installation, name) : home.directory
  const mark = currentMark(home, directory, name)
  const log = openSync(join(home.log, `${name}.log`), 'a', 0o640)
  const { options, entry } = programs[name]
  const [file, ...words] = commandOf(installation, name, [
    process.execPath,
    ...options,
    join(directory, entry),
  ])
  const child = spawn(file as string, words, {
    cwd: ownHome,
    env: programEnvironment(ownHome, name),
    // a file, not a pipe: the process must not depend on who started it
    stdio: ['ignore', log, log],
    detached: true,
  })
  closeSync(log)
  const started = supervised(child.pid)
  const identity = child.pid === undefined ? null : identify(child.pid)
  if (identity !== null) {
    writeRecord(home, name, {
      ...identity,
      startedAt: Date.now(),
      mark,
      ...(directory === checkout ? {} : { copy: basename(directory) }),
    })
    say('process.started', { name, pid: identity.pid })
  }
  child.once('error', (error) => say('process.not_started', { name, error: error.message }))
  child.once('close', (code, signal) => {
    say('process.ended', { name, pid: child.pid, code, signal })
    started.emit('close', GONE, null)
  })
  return started
}

function startDatabase({ home, installation, say }: Supervision): Supervised {
  if (installation === null) throw new Error('an enrolled host has no control database')
  const database = supervised()
  startControlDatabase(home, installation).then(
    (identity) => {
      database.pid = identity.pid
      writeRecord(home, 'control-database', { ...identity, startedAt: Date.now(), mark: '' })
      say('process.started', { name: 'control-database', pid: identity.pid })
      closeWhenGone(database, identity, () =>
        say('process.ended', { name: 'control-database', pid: identity.pid }),
      )
    },
    (error: unknown) => {
      say('process.not_started', { name: 'control-database', error: String(error) })
      database.emit('close', GONE, null)
    },
  )
  return database
}

/** Starts a process, or takes over the one that runs already. Emits `close` once when it is gone. */
export function superviseProcess(supervision: Supervision, name: ProcessName): Supervised {
  return name === 'control-database' ? startDatabase(supervision) : startProgram(supervision, name)
}
