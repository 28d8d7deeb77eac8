import { z } from 'zod'
import { type CommitMode, commitModes, waitsForStandbys } from './replication'

/** What an agent does to its own primary while neither a standby nor the console reaches it. */
export const IsolatedPrimary = z.enum(['end-clients', 'read-only', 'demote'])
export type IsolatedPrimary = z.infer<typeof IsolatedPrimary>

/** How a cluster fails over automatically. */
export const AutomaticFailover = z.object({
  /** Both witnesses have to agree for so long. Also the wal_receiver_timeout of the members: a standby notices a silent primary by it. */
  afterMs: z.number().int().min(2_000).max(600_000).default(5_000),
  /** At least so long from one automatic failover to the next. */
  minIntervalMs: z.number().int().min(0).max(86_400_000).default(600_000),
  /** An agent whose primary nobody reaches waits so long before it does what `isolatedPrimary` says. */
  isolatedAfterMs: z.number().int().min(5_000).max(3_600_000).default(30_000),
  isolatedPrimary: IsolatedPrimary.default('read-only'),
})
export type AutomaticFailover = z.infer<typeof AutomaticFailover>

/** What was decided last about a cluster that fails over automatically, while something is wrong with its primary. */
export const AutomaticWord = z.object({
  kind: z.enum(['wait', 'decline', 'start', 'failover']),
  text: z.string(),
  /** Since when it says so, ms. */
  at: z.number(),
})
export type AutomaticWord = z.infer<typeof AutomaticWord>

/** What the agents of its members have to know of that, to hold a primary back by themselves. */
export const HeldBack = AutomaticFailover.pick({ isolatedAfterMs: true, isolatedPrimary: true })
export type HeldBack = z.infer<typeof HeldBack>

/** Names of the settings that Floe keeps on every member of an automatic cluster. */
export const COMMIT_FLOOR = 'polar_commit_floor'
export const RECEIVER_TIMEOUT = 'wal_receiver_timeout'

/** Whether a floor has every commit wait for standbys. */
export const floorWaits = (floor: string | null | undefined): boolean => waitsForStandbys(String(floor))

/** Whether a floor lifts every commit to a level that is at least this one. */
export function floorCovers(floor: string | null | undefined, level: CommitMode): boolean {
  const at = commitModes.indexOf(floor as CommitMode)
  return at >= 0 && waitsForStandbys(String(floor)) && at <= commitModes.indexOf(level)
}
