import { z } from 'zod'

/**
 * One checkpoint or restartpoint as the server's own log has it. Times are in milliseconds, distances in bytes.
 * `reasons` are PostgreSQL's flag words of the start line: immediate, force, time, wal, shutdown, end-of-recovery, wait, flush-all.
 */
export const CheckpointRecord = z.object({
  kind: z.enum(['checkpoint', 'restartpoint']),
  reasons: z.array(z.string()),
  startedAt: z.number().nullable(),
  completedAt: z.number(),
  buffersWritten: z.number().int(),
  buffersPercent: z.number(),
  slruBuffersWritten: z.number().int().nullable(),
  walFilesAdded: z.number().int(),
  walFilesRemoved: z.number().int(),
  walFilesRecycled: z.number().int(),
  writeMs: z.number(),
  syncMs: z.number(),
  totalMs: z.number(),
  syncFiles: z.number().int(),
  longestSyncMs: z.number(),
  averageSyncMs: z.number(),
  distanceBytes: z.number(),
  estimateBytes: z.number(),
  lsn: z.string().nullable(),
  redoLsn: z.string().nullable(),
})
export type CheckpointRecord = z.infer<typeof CheckpointRecord>

/**
 * A checkpoint that is running now; `null` elsewhere. `targetMs` is checkpoint_completion_target × checkpoint_timeout for
 * timed ones. The progress fields are known where the engine has module `monitor`: of the write phase
 * buffersProcessed / buffersTotal, of the sync phase filesProcessed / filesTotal.
 */
export const RunningCheckpoint = z.object({
  kind: z.enum(['checkpoint', 'restartpoint']),
  reasons: z.array(z.string()),
  startedAt: z.number(),
  buffersWritten: z.number().int().nullable(),
  targetMs: z.number().nullable(),
  phase: z.enum(['prepare', 'write', 'sync', 'finish']).nullish(),
  buffersTotal: z.number().int().nullish(),
  buffersProcessed: z.number().int().nullish(),
  filesTotal: z.number().int().nullish(),
  filesProcessed: z.number().int().nullish(),
})
export type RunningCheckpoint = z.infer<typeof RunningCheckpoint>

const reasonWords: Record<string, string> = {
  time: 'checkpoint_timeout elapsed',
  wal: 'max_wal_size reached',
  immediate: 'as fast as possible',
  force: 'requested',
  fast: 'as fast as possible',
  shutdown: 'shutdown',
  'end-of-recovery': 'end of recovery',
  wait: 'a command waited for it',
  'flush-all': 'all buffers, also unlogged',
  'flush-unlogged': 'also unlogged buffers',
}

/** The reason of a checkpoint in words, most telling flag first: `max_wal_size reached`, `requested, as fast as possible`. */
export function checkpointReason(reasons: readonly string[]): string {
  const order = [
    'shutdown',
    'end-of-recovery',
    'wal',
    'time',
    'force',
    'fast',
    'immediate',
    'flush-all',
    'flush-unlogged',
    'wait',
  ]
  const known = order.filter((r) => reasons.includes(r)).map((r) => reasonWords[r] as string)
  const unknown = reasons.filter((r) => !(r in reasonWords))
  return [...new Set([...known, ...unknown])].join(', ') || 'not stated'
}
