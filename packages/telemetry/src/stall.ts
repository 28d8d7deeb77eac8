import { z } from 'zod'

/** What an instance that had work and got nothing committed waited for. */
export const stallCauses = {
  lock: 'a lock',
  'limited-device': 'a device at its limit',
  storage: 'storage',
  checkpointer: 'the checkpointer',
  standby: 'a synchronous standby',
  'limited-cpu': 'processor time, at its limit',
  memory: 'memory that the kernel had to reclaim first',
  other: 'something else',
} as const
export const StallCause = z.enum(Object.keys(stallCauses) as [keyof typeof stallCauses])
export type StallCause = z.infer<typeof StallCause>

/** Sessions found waiting for an event, added up over the samples of a stall. */
export const WaitCount = z.object({
  type: z.string().max(64),
  event: z.string().max(64),
  count: z.number().int(),
})
export type WaitCount = z.infer<typeof WaitCount>

/** A stretch of time in which sessions had work and none of it was committed. Moments in ms since the epoch. */
export const StallRecord = z.object({
  startedAt: z.number(),
  /** When the first sample showed a commit again, or no work. */
  endedAt: z.number(),
  /** A cause that this side does not know yet is another one. */
  cause: StallCause.catch('other'),
  /** What sessions waited for, most frequent first; at most eight. */
  waits: z.array(WaitCount).max(8),
  /** Most sessions that waited at once. */
  sessions: z.number().int(),
  /** The checkpoint that ran meanwhile, as far as it came; its phase is known where the engine has module monitor. */
  checkpoint: z.object({ kind: z.string().max(64), phase: z.string().max(64).nullable() }).nullable(),
  /** The checkpointer's process was stopped by a signal: it does not run, and has not ended. */
  checkpointerStopped: z.boolean(),
  /**
   * The function of the kernel that the checkpointer's process did not return from (state D, never woken up for two seconds),
   * empty where the kernel does not name it; null: it did not hang. Since contract 1.24.
   */
  checkpointerHangsIn: z.string().max(64).nullable().default(null),
  /** Name of the device that was at its limit. */
  device: z.string().max(64).nullable(),
})
export type StallRecord = z.infer<typeof StallRecord>

/** Shares of what sessions waited for, most frequent first, at most three: `Lock:relation 80 %, IO:WalSync 20 %`. */
export function waitShares({ waits }: Pick<StallRecord, 'waits'>): string {
  const all = waits.reduce((sum, w) => sum + w.count, 0)
  return waits
    .slice(0, 3)
    .map((w) => `${w.type}:${w.event} ${Math.round((w.count / all) * 100)} %`)
    .join(', ')
}

/** Cause of a stall in words: `a device at its limit (nvme0n1)`. */
export function stallCause(
  s: Pick<StallRecord, 'cause' | 'device' | 'checkpointerStopped' | 'checkpointerHangsIn'>,
): string {
  if (s.cause === 'checkpointer') {
    if (s.checkpointerStopped) return 'the checkpointer, which is stopped'
    const { checkpointerHangsIn: place } = s
    if (place !== null) return `the checkpointer, which hangs in the kernel${place && ` (${place})`}`
  }
  return s.device === null ? stallCauses[s.cause] : `${stallCauses[s.cause]} (${s.device})`
}
