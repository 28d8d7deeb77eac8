import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fault, type HostConfiguration, type Installation } from '@floe/domain'
import { type EngineUser, findEngineUser } from '../installation/engine-user'
import type { Home } from '../installation/home'
import { identify, type ProcessIdentity, worksIn } from '../process/identity'
import { runProgram } from '../run-program'

/** Where the control database lies. */
export function controlDirectory(installation: Installation): string {
  return join(installation.instancesDirectory, 'control')
}
export function controlDataDirectory(installation: Installation): string {
  return join(controlDirectory(installation), 'pgdata')
}
export function controlLogFile(home: Home): string {
  return join(home.log, 'control-database.log')
}

/** The engine's user of an installation, which `up` has made. */
export function engineUserOf(installation: Pick<HostConfiguration, 'engineUser'>): EngineUser {
  const user = findEngineUser()
  if (user === null)
    throw fault('installation.no_engine_user', `user "${installation.engineUser ?? ''}" does not exist`, {
      hint: 'Run "./floe up": it creates the user.',
    })
  return user
}

/** Environment of engine programs: nothing of ours but what they need. */
export function engineEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C', TZ: process.env.TZ }
}

/** The postmaster of the control database; null when it does not run. postmaster.pid names it and when it started. */
export function controlPostmaster(installation: Installation): ProcessIdentity | null {
  const directory = controlDataDirectory(installation)
  let lines: string[]
  try {
    lines = readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')
  } catch {
    return null
  }
  const identity = identify(Number(lines[0]))
  // after a crash another program, or another instance, may have the pid
  return identity !== null && worksIn(identity.pid, directory) ? identity : null
}

/** The prefix whose binaries the running postmaster was started from; null when it cannot be told. */
export function runningPrefix(identity: ProcessIdentity): string | null {
  try {
    const words = readFileSync(`/proc/${identity.pid}/cmdline`, 'utf8').split('\0')
    return words[0]?.endsWith('/bin/postgres') ? words[0].slice(0, -'/bin/postgres'.length) : null
  } catch {
    return null
  }
}

/** Starts the control database and waits until it answers, at most 120 s (a long recovery). */
export async function startControlDatabase(home: Home, installation: Installation): Promise<ProcessIdentity> {
  const running = controlPostmaster(installation)
  if (running !== null) return running
  const user = engineUserOf(installation)
  // opened here: the engine's user need not be able to reach FLOE_HOME
  const log = openSync(controlLogFile(home), 'a', 0o640)
  try {
    const { spawn } = await import('node:child_process')
    const status = await new Promise<number>((resolve) => {
      const child = spawn(
        join(installation.enginePrefix, 'bin/pg_ctl'),
        ['start', '-w', '-t', '120', '-D', controlDataDirectory(installation)],
        { ...user.switchTo, cwd: '/', env: engineEnvironment(), stdio: ['ignore', log, log], detached: true },
      )
      child.once('error', () => resolve(127))
      child.once('exit', (code) => resolve(code ?? 1))
    })
    const started = controlPostmaster(installation)
    if (status === 0 && started !== null) return started
  } finally {
    closeSync(log)
  }
  throw fault('control_database.not_started', 'the control database did not start', {
    detail: `Its log is "${controlLogFile(home)}".`,
    hint: 'Look at the end of that log for the reason.',
  })
}

/** Stops the control database (fast), at most 60 s. */
export async function stopControlDatabase(installation: Installation): Promise<void> {
  if (controlPostmaster(installation) === null) return
  const user = engineUserOf(installation)
  const { status, tail } = await runProgram(
    join(installation.enginePrefix, 'bin/pg_ctl'),
    ['stop', '-w', '-t', '60', '-m', 'fast', '-D', controlDataDirectory(installation)],
    { ...user.switchTo, cwd: '/', env: engineEnvironment() },
  )
  if (status !== 0 && controlPostmaster(installation) !== null)
    throw fault('control_database.not_stopped', 'the control database did not stop', {
      detail: tail.join('\n'),
    })
}
