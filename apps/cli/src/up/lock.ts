import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import type { Home } from '../installation/home'
import type { Progress } from '../progress/progress'

const WAIT_SECONDS = 1_800

type Lock = { release: () => Promise<void> }

/** Holds the installation's lock, so that two runs of `up` or `down` do not meet: the second waits for the first. */
export const holdUpLock = (home: Home, progress: Progress): Promise<Lock> =>
  holdLock(
    join(home.run, 'up.lock'),
    () => progress.say('waiting: another "./floe up" or "./floe down" works on this installation'),
    'another run works on this installation',
  )

/** Holds a lock, or waits for it. The kernel gives it back when this process ends, however it ends. */
export async function holdLock(file: string, waiting: () => void, busy: string): Promise<Lock> {
  const take = (...options: string[]) => {
    // flock holds it as long as cat has something to read, which is as long as we live
    const child = spawn('flock', [...options, '-E', '75', file, 'sh', '-c', 'echo held; exec cat'], {
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    const held = new Promise<boolean>((resolve) => {
      child.stdout.once('data', () => resolve(true))
      child.once('error', () => resolve(false))
      child.once('close', () => resolve(false))
    })
    return { child, held }
  }
  let attempt = take('-n')
  if (!(await attempt.held)) {
    waiting()
    attempt = take('-w', String(WAIT_SECONDS))
    if (!(await attempt.held))
      throw fault('installation.busy', busy, {
        detail: `It has held "${file}" for more than ${WAIT_SECONDS / 60} minutes.`,
        hint: 'Look for it with "ps", and end it if it hangs.',
      })
  }
  const { child } = attempt
  child.stdin.on('error', () => {})
  return {
    release: () =>
      new Promise((resolve) => {
        child.once('close', () => resolve())
        child.stdin.end()
      }),
  }
}
