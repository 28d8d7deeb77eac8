import { z } from 'zod'

export const AuditOutcome = z.enum(['allowed', 'denied'])
export type AuditOutcome = z.infer<typeof AuditOutcome>

const words = z.string().trim().min(1).max(200)

export const AuditListInput = z
  .object({
    /** Id or name of who asked. */
    actor: words.optional(),
    /** `instance.create`, or `instance` for all of its verbs. */
    action: words.optional(),
    outcome: AuditOutcome.optional(),
    /** Id of an object, or its name. */
    object: words.optional(),
    limit: z.number().int().min(1).max(200).default(100),
    /** `nextCursor` of the page before. */
    cursor: z.string().max(40).optional(),
  })
  .default({ limit: 100 })

export const AuditEvent = z.object({
  eventId: z.string(),
  at: z.number(),
  actor: z.string(),
  actorName: z.string(),
  action: z.string(),
  outcome: AuditOutcome,
  objectKind: z.string().nullable(),
  objectId: z.string().nullable(),
  /** What the object was called then, where the row says it. */
  objectName: z.string().nullable(),
  detail: z.record(z.string(), z.unknown()).nullable(),
  ipAddress: z.string().nullable(),
})
export type AuditEvent = z.infer<typeof AuditEvent>

export const AuditList = z.object({
  /** Newest first. */
  events: z.array(AuditEvent),
  nextCursor: z.string().nullable(),
})

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
