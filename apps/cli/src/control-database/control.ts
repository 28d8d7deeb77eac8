import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { fault, type Installation } from '@floe/domain'
import type { Home } from '../installation/home'
import { findEngineUser, findUser, type OsUser, withoutRoot } from '../installation/os-user'
import { findPostmaster, type Postmaster, stopPostmaster } from '../process/postmaster'

const START_SECONDS = 120
const STOP_MS = 60_000

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

/** The user of the control database, which `up` has made. */
export function controlUser(installation: Pick<Installation, 'users'>): OsUser {
  const name = installation.users?.controlDatabase
  const user = name === undefined ? findEngineUser() : findUser(name)
  if (user === null)
    throw fault('installation.no_user', `user "${name ?? 'floe'}" does not exist`, {
      hint: 'Run "./floe up": it creates the user.',
    })
  return user
}

/** Environment of engine programs: nothing of ours but what they need. */
export function engineEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C', TZ: process.env.TZ }
}

/** The postmaster of the control database; null when it does not run, or is not ours to run. */
export const controlPostmaster = (installation: Installation): Postmaster | null =>
  installation.controlDatabase.url === null ? findPostmaster(controlDataDirectory(installation)) : null

/** Starts the control database and waits until it answers, at most 120 s (a long recovery). */
export async function startControlDatabase(home: Home, installation: Installation): Promise<Postmaster> {
  const running = controlPostmaster(installation)
  if (running !== null) return running
  const user = controlUser(installation)
  // opened here: its user need not be able to reach FLOE_HOME
  const log = openSync(controlLogFile(home), 'a', 0o640)
  try {
    const status = await new Promise<number>((resolve) => {
      const start = [
        ...[join(installation.enginePrefix, 'bin/pg_ctl'), 'start', '-w', '-t', String(START_SECONDS)],
        ...['-D', controlDataDirectory(installation)],
      ]
      const [program, ...words] = user.switchTo ? withoutRoot(user.switchTo, null, start) : start
      const child = spawn(program as string, words, {
        cwd: '/',
        env: engineEnvironment(),
        stdio: ['ignore', log, log],
        detached: true,
        // it would wait for a pipe in the place of postmaster.pid, too
        timeout: (START_SECONDS + 10) * 1_000,
        killSignal: 'SIGKILL',
      })
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
  const postmaster = controlPostmaster(installation)
  if (postmaster !== null && !(await stopPostmaster(postmaster, STOP_MS)))
    throw fault('control_database.not_stopped', 'the control database did not stop', {
      detail: `Its process is ${postmaster.pid}.`,
    })
}
