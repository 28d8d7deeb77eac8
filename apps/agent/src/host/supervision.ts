import type { InstanceLimits } from '@floe/domain'
import { firstProcess } from '@floe/host/process-facts'
import type { EngineUser } from './engine-user'
import { Detached } from './supervise-detached'
import { Systemd } from './supervise-systemd'

/** What is started: the postmaster in the foreground, which the supervision keeps apart from the agent. */
export type EngineProcess = {
  /** Names the unit. */
  instanceId: string
  /** For people who list units. */
  title: string
  file: string
  args: readonly string[]
  directory: string
  /** Receives what the engine prints before its own log is open. */
  outputFile: string
  user: EngineUser
  /** Its own: a sandbox must not take them away. */
  writableDirectories: readonly string[]
  limits: InstanceLimits
  /** Files of cgroups that it writes its pid into before anything else. */
  entrances: readonly string[]
}

/**
 * Starts engine processes so that they live on when the agent ends. Stopping, readiness and adoption are the same for
 * all: a signal to the postmaster, an answer to SQL, and postmaster.pid.
 */
export interface Supervision {
  readonly kind: 'systemd' | 'detached'
  /** Resolves when the process was started; whether it stays up is for the caller to watch. */
  start(process: EngineProcess): Promise<void>
  /** Whether a process is known to descend from what was started for the instance, wherever it works now. */
  owns(pid: number, instanceId: string): boolean
  /** Clears what the supervision keeps of an instance that has ended. */
  forget(instanceId: string): Promise<void>
}

/** systemd where it is the first process and the agent may start units, else detached children. */
export function chooseSupervision(
  bootUnit: string | null,
  ownUid = process.getuid?.() ?? 0,
  first = firstProcess(),
): Supervision {
  return first === 'systemd' && ownUid === 0 ? new Systemd(bootUnit) : new Detached()
}
