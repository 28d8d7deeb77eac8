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
