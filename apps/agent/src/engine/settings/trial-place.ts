import { lstatSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { EngineUser } from '../../host/engine-user'
import { endProcessesIn } from '../../host/process-table'
import { runCommand } from '../../host/run-command'
import type { AgentInstallation } from '../../installation'
import type { TrialPlace } from './trial'

/** Where settings of an instance are tried: in its own directory, which goes with it. */
export function trialPlace(installation: AgentInstallation, instanceId: string): TrialPlace {
  return {
    outer: join(installation.instancesDirectory, instanceId),
    socketDirectory: join(installation.socketDirectory, `trial-${instanceId.slice(-12)}`),
  }
}

/**
 * Removes what earlier versions tried settings of all instances in. Its outer two levels are root's own; what lies below is
 * removed by whom it belongs to.
 */
export async function removeSharedTrials(installation: AgentInstallation, user: EngineUser): Promise<void> {
  const shared = join(installation.instancesDirectory, '.trials')
  if (!lstatSync(shared, { throwIfNoEntry: false })?.isDirectory()) return
  endProcessesIn(shared)
  await runCommand('find', [shared, '-xdev', '-mindepth', '3', '-delete'], { user, timeoutMs: 120_000 })
  for (const key of readdirSync(shared)) {
    for (const entry of readdirSync(join(shared, key))) {
      const path = join(shared, key, entry)
      if (lstatSync(path).isDirectory()) rmdirSync(path)
      else unlinkSync(path)
    }
    rmdirSync(join(shared, key))
  }
  rmdirSync(shared)
}
