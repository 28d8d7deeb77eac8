import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { fault } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import { startInUnit, startsWithMachine } from '../installation/boot-unit'
import { checkoutDirectory, type Home, readConfiguration } from '../installation/home'
import { liveRecord } from '../process/records'

const DEADLINE_MS = 10_000

/** Starts the supervisor unless it runs, and waits until it has written its record. */
export async function startSupervisor(home: Home): Promise<void> {
  if (liveRecord(home, 'supervisor') !== null) return
  const file = join(home.log, 'supervisor.log')
  const script = join(import.meta.dirname, 'supervise.js')
  const environment = { FLOE_HOME: home.directory, FLOE_CHECKOUT: checkoutDirectory() }
  const configuration = readConfiguration(home)
  let ended = () => false
  if (configuration !== null && startsWithMachine(configuration))
    await startInUnit(configuration, [process.execPath, script], { file, home: home.directory, environment })
  else {
    const log = openSync(file, 'a', 0o640)
    const child = spawn(process.execPath, [script], {
      cwd: home.directory,
      env: { ...process.env, ...environment },
      stdio: ['ignore', log, log],
      detached: true,
    })
    child.unref()
    closeSync(log)
    ended = () => child.exitCode !== null
  }
  const runs = () => liveRecord(home, 'supervisor') !== null
  await waitFor(() => runs() || ended(), { boundMs: DEADLINE_MS, everyMs: 25 })
  if (!runs())
    throw fault('supervisor.not_started', 'the supervisor did not start', {
      hint: `Its log is "${file}".`,
    })
}
