import { z } from 'zod'

export const AuditVerifyInput = z
  .object({
    /** Hash of the newest row at an earlier time, in hexadecimal, as it was kept elsewhere. */
    head: z
      .string()
      .regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits')
      .optional(),
  })
  .default({})

export const AuditVerified = z.object({
  /** Rows whose hash was computed again. */
  rows: z.number(),
  /** The last row that was removed past its retention; "0" where none ever was. */
  anchorId: z.string(),
  headId: z.string(),
  headHash: z.string(),
  /** The first place where the chain does not hold; null where it does. */
  broken: z
    .object({
      kind: z.enum(['changed', 'missing', 'replaced']),
      eventId: z.string(),
      /** Of missing rows the last one. */
      lastId: z.string(),
      at: z.number().nullable(),
      message: z.string(),
    })
    .nullable(),
  /** The row that has the hash which was given; null where none has it. Left out where none was given. */
  known: z.object({ eventId: z.string(), at: z.number().nullable() }).nullable().optional(),
})
export type AuditVerified = z.infer<typeof AuditVerified>
