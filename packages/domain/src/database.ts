import { z } from 'zod'

/** Of a database, as PostgreSQL takes it. */
export const DatabaseName = z.string().min(1, 'must not be empty').max(63, 'must have at most 63 characters')

/** What a rebuild of a database's indexes came to. */
export const Reindexed = z.object({
  rebuilt: z.number().int(),
  /** Size of those that were rebuilt. */
  bytesBefore: z.number(),
  bytesAfter: z.number(),
  /** Those that cannot be rebuilt beside writers, or were dropped meanwhile, and why. */
  skipped: z.array(z.object({ index: z.string(), why: z.string() })),
})
export type Reindexed = z.infer<typeof Reindexed>
