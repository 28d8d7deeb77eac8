import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import { checkoutDirectory, type Home } from '../installation/home'
import { liveRecord } from '../process/records'

const DEADLINE_MS = 10_000

/** Starts the supervisor unless it runs, and waits until it has written its record. */
export async function startSupervisor(home: Home): Promise<void> {
  if (liveRecord(home, 'supervisor') !== null) return
  const log = openSync(join(home.log, 'supervisor.log'), 'a', 0o640)
  const child = spawn(process.execPath, [join(import.meta.dirname, 'supervise.js')], {
    cwd: home.directory,
    env: { ...process.env, FLOE_HOME: home.directory, FLOE_CHECKOUT: checkoutDirectory() },
    stdio: ['ignore', log, log],
    detached: true,
  })
  child.unref()
  closeSync(log)
  const runs = () => liveRecord(home, 'supervisor') !== null
  await waitFor(() => runs() || child.exitCode !== null, { boundMs: DEADLINE_MS, everyMs: 25 })
  if (!runs())
    throw fault('supervisor.not_started', 'the supervisor did not start', {
      hint: `Its log is "${join(home.log, 'supervisor.log')}".`,
    })
}
