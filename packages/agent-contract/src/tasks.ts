import { InstanceId, InstanceName, ScramVerifier, SettingChange, StopMode } from '@floe/domain'
import { z } from 'zod'

/**
 * Everything the console may ask a host to do. Each is idempotent by its key and safe to run twice; none reports success
 * before the outcome was seen (running means it answers SQL).
 */
export const TaskInput = z.discriminatedUnion('kind', [
  /** initdb with data checksums, assign a port, write the managed settings. Does not start it. */
  z.object({
    kind: z.literal('create-instance'),
    instanceId: InstanceId,
    name: InstanceName,
    settings: z.record(z.string(), z.string()),
    /**
     * SCRAM-SHA-256 verifier of the password of role `postgres` (scramVerifier()); null leaves that role without a
     * password, so that only those whom the person lets in otherwise can connect.
     */
    ownerPasswordVerifier: ScramVerifier.nullable().default(null),
  }),
  z.object({ kind: z.literal('start-instance'), instanceId: InstanceId }),
  /**
   * A stop with mode immediate is also taken while another task is stopping the instance: it hastens that stop. After
   * `deadlineMs` (10 minutes when left out) it fails; the engine goes on stopping.
   */
  z.object({
    kind: z.literal('stop-instance'),
    instanceId: InstanceId,
    mode: StopMode,
    deadlineMs: z.number().int().positive().max(3_600_000).optional(),
  }),
  z.object({ kind: z.literal('restart-instance'), instanceId: InstanceId, mode: StopMode }),
  z.object({ kind: z.literal('reload-instance'), instanceId: InstanceId }),
  /** Stops it (immediate if need be) and removes its directory, or renames it when keepFiles. Refused unless confirmName is its name. */
  z.object({
    kind: z.literal('delete-instance'),
    instanceId: InstanceId,
    confirmName: z.string(),
    keepFiles: z.boolean(),
  }),
  /** Checked by the binary, written to the managed file, reloaded, read back. Nothing changes when one of them is refused. */
  z.object({
    kind: z.literal('change-settings'),
    instanceId: InstanceId,
    changes: z.array(SettingChange).min(1),
  }),
])
export type TaskInput = z.infer<typeof TaskInput>
export type TaskKind = TaskInput['kind']

/** What a task answers when it succeeded. */
export const taskResults = {
  'create-instance': z.object({ port: z.number().int(), directory: z.string() }),
  'start-instance': z.object({ postmasterPid: z.number().int(), readyMs: z.number() }),
  'stop-instance': z.object({ stoppedMs: z.number() }),
  'restart-instance': z.object({ postmasterPid: z.number().int(), readyMs: z.number() }),
  'reload-instance': z.object({ pendingRestart: z.array(z.string()) }),
  'delete-instance': z.object({ removed: z.boolean(), keptDirectory: z.string().nullable() }),
  'change-settings': z.object({
    confirmed: z.array(
      z.object({
        name: z.string(),
        oldValue: z.string().nullable(),
        /** As SHOW prints it after the reload; where a restart is pending, still the old one. */
        newValue: z.string().nullable(),
        pendingRestart: z.boolean(),
      }),
    ),
  }),
} as const satisfies Record<TaskKind, z.ZodType>
export type TaskResult<K extends TaskKind> = z.infer<(typeof taskResults)[K]>
