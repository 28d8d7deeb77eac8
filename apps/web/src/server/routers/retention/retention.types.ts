import { z } from 'zod'

/** What is kept for a time: samples by their resolution, and rows that grow with use. */
export const RetentionKind = z.enum([
  'sample-1s',
  'sample-10s',
  'sample-1m',
  'operation',
  'incident',
  'session',
  'audit',
])
export type RetentionKind = z.infer<typeof RetentionKind>

/** From when its age counts, for people. */
export const retentionWords: Record<RetentionKind, string> = {
  'sample-1s': 'samples of 1 s',
  'sample-10s': 'samples of 10 s',
  'sample-1m': 'samples of 1 min',
  operation: 'operations with steps and log, from their end',
  incident: 'incidents, from their resolution',
  session: 'sessions, from their expiry',
  audit: 'audit rows, at least 90 days',
}

export const RetentionList = z.object({
  retention: z.array(z.object({ kind: RetentionKind, meaning: z.string(), keepSeconds: z.number().int() })),
})
export const RetentionSetInput = z
  .object({
    kind: RetentionKind,
    /** At most ten years. */
    keepSeconds: z.number().int().min(3_600).max(315_360_000),
  })
  .refine((r) => r.kind.startsWith('sample-') || r.keepSeconds >= 86_400, {
    message: 'must be at least a day',
    path: ['keepSeconds'],
  })
  .refine((r) => r.kind !== 'audit' || r.keepSeconds >= 90 * 86_400, {
    message: 'must be at least 90 days for audit rows',
    path: ['keepSeconds'],
  })
