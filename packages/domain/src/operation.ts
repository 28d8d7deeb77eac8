import { z } from 'zod'
import { InstanceId, InstanceName, ScramVerifier } from './ids'
import { StopMode } from './instance'
import { SettingChange } from './setting'

export const OperationState = z.enum(['queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled'])
export type OperationState = z.infer<typeof OperationState>

export const endedOperationStates: readonly OperationState[] = ['succeeded', 'failed', 'cancelled']

export type OperationTransition = { from: OperationState; to: OperationState; because: string }

/** Every edge of an operation's life. `because` is the log line. Only the controller walks them, save for the two marked. */
export const operationTransitions: readonly OperationTransition[] = [
  { from: 'queued', to: 'running', because: 'a controller leased it' },
  { from: 'queued', to: 'cancelled', because: 'it was cancelled before it started' },
  { from: 'running', to: 'succeeded', because: 'its last step is done' },
  { from: 'running', to: 'failed', because: 'a step failed' },
  // asked by a person through web
  { from: 'running', to: 'cancelling', because: 'a cancel was asked for' },
  { from: 'cancelling', to: 'cancelled', because: 'the running step was given up' },
  { from: 'cancelling', to: 'succeeded', because: 'its last step was done before the cancel took effect' },
  { from: 'cancelling', to: 'failed', because: 'a step failed while it was being cancelled' },
]

export function canMoveOperation(from: OperationState, to: OperationState): boolean {
  return operationTransitions.some((t) => t.from === from && t.to === to)
}

export const StepState = z.enum(['pending', 'running', 'succeeded', 'failed', 'cancelled'])
export type StepState = z.infer<typeof StepState>

/** What each kind of operation is asked with. The kind is the verb in console, API and command line. */
export const operationInputs = {
  'create-instance': z.object({
    instanceId: InstanceId,
    name: InstanceName,
    /** Settings written before the first start; names and values as in postgresql.conf. */
    settings: z.record(z.string(), z.string()).default({}),
    /** Verifier of the password that role `postgres` gets; the password itself is stored nowhere. */
    ownerPasswordVerifier: ScramVerifier.nullable().default(null),
  }),
  'start-instance': z.object({ instanceId: InstanceId }),
  'stop-instance': z.object({
    instanceId: InstanceId,
    mode: StopMode.default('fast'),
    /** It began as a fast one, and somebody would not wait for it. */
    hastened: z.boolean().optional(),
  }),
  'restart-instance': z.object({
    instanceId: InstanceId,
    mode: StopMode.default('fast'),
    hastened: z.boolean().optional(),
  }),
  'reload-instance': z.object({ instanceId: InstanceId }),
  'delete-instance': z.object({
    instanceId: InstanceId,
    /** Typed by the person; must equal the instance's name. */
    confirmName: z.string(),
    /** Keep the data directory on the host (renamed, never started again by Floe). */
    keepFiles: z.boolean().default(false),
  }),
  'change-settings': z.object({ instanceId: InstanceId, changes: z.array(SettingChange).min(1) }),
} as const

export type OperationKind = keyof typeof operationInputs
export const operationKinds = Object.keys(operationInputs) as OperationKind[]
export const OperationKind = z.enum(operationKinds as [OperationKind, ...OperationKind[]])
export type OperationInput<K extends OperationKind> = z.infer<(typeof operationInputs)[K]>

/** The words a person reads for a kind. */
export const operationTitles: Record<OperationKind, string> = {
  'create-instance': 'Create instance',
  'start-instance': 'Start instance',
  'stop-instance': 'Stop instance',
  'restart-instance': 'Restart instance',
  'reload-instance': 'Reload settings',
  'delete-instance': 'Delete instance',
  'change-settings': 'Change settings',
}
