import { endProcess } from '@floe/host/process'
import type { Command } from 'commander'
import { stopControlDatabase } from '../control-database/control'
import { currentHome, type Home, readInstallation } from '../installation/home'
import { runningInstances, stopInstances } from '../installation/instances'
import { printResult } from '../output'
import { liveRecord, programNames, removeRecord, runningProgram } from '../process/records'
import { holdUpLock } from '../up/lock'
import { progressOf } from './up'
import { verb } from './verb'

const STOP_MS = 20_000

export type DownResult = { stopped: string[]; instancesStopped: string[]; instancesRunning: string[] }

/** Stops Floe: first the supervisor, which would start the others again. */
export async function down(home: Home, instances: boolean): Promise<DownResult> {
  const installation = readInstallation(home)
  const result: DownResult = { stopped: [], instancesStopped: [], instancesRunning: [] }
  if (installation !== null && instances) result.instancesStopped = await stopInstances(home, installation)
  const supervisor = liveRecord(home, 'supervisor')
  if (supervisor !== null) {
    await endProcess(supervisor, STOP_MS)
    result.stopped.push('supervisor')
  }
  removeRecord(home, 'supervisor')
  for (const name of [...programNames].reverse()) {
    const running = runningProgram(home, name)
    if (running !== null) {
      await endProcess(running, STOP_MS)
      result.stopped.push(name)
    }
    removeRecord(home, name)
  }
  if (installation !== null) {
    if (liveRecord(home, 'control-database') !== null) result.stopped.push('control-database')
    await stopControlDatabase(installation)
    removeRecord(home, 'control-database')
    result.instancesRunning = runningInstances(home, installation).map((instance) => instance.name)
  }
  return result
}

function formatResult({ stopped, instancesStopped, instancesRunning }: DownResult): string {
  const lines = [stopped.length === 0 ? 'Nothing was running.' : `Stopped: ${stopped.join(', ')}.`]
  if (instancesStopped.length > 0) lines.push(`Instances stopped: ${instancesStopped.join(', ')}.`)
  if (instancesRunning.length > 0)
    lines.push(
      `Instances keep running: ${instancesRunning.join(', ')}. "./floe down --instances" stops them too.`,
    )
  return lines.join('\n')
}

export function addDown(program: Command): void {
  verb(
    program,
    'down',
    'stop Floe',
    'Stops web, controller, agent and the control database. Instances keep running, unless --instances is given.',
  )
    .option('--instances', 'stop the instances too (fast)')
    .action(async ({ json, instances }: { json?: boolean; instances?: boolean }) => {
      const home = currentHome()
      const { progress } = progressOf('down')
      const lock = await holdUpLock(home, progress)
      try {
        const result = await down(home, instances ?? false)
        printResult(json, result, () => formatResult(result))
      } finally {
        await lock.release()
      }
    })
}
