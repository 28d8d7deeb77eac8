import { join } from 'node:path'
import type { AgentInstallation } from '../installation'

/** Where trials of settings run; beside the instances, because the engine's user has to reach it. */
export function trialsDirectory(installation: AgentInstallation): string {
  return join(installation.instancesDirectory, '.trials')
}
