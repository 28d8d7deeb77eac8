import { z } from 'zod'

/**
 * What protects an instance against pages that a crash tore, in the words of the engine's view
 * `polar_page_repair_status`: images in the WAL, a source that has every page, nothing, or a person's override.
 */
export const ProtectionState = z.enum(['full_page_writes', 'protected', 'exposed', 'overridden'])
export type ProtectionState = z.infer<typeof ProtectionState>

/** The name under which the engine lists an instance's own flashback log among its sources. */
export const FLASHBACK_LOG_SOURCE = 'flashback log'

/** A source of pages as the engine last saw it (`polar_page_repair_sources`). */
export const RepairSource = z.object({
  /** host:port/database, never the whole connection string; or FLASHBACK_LOG_SOURCE. */
  source: z.string(),
  healthy: z.boolean(),
  /** Why it is not healthy. */
  why: z.string().nullable(),
  flushLsn: z.string().nullable(),
  replayLsn: z.string().nullable(),
  /** ms since the epoch */
  checkedAt: z.number().nullable(),
})
export type RepairSource = z.infer<typeof RepairSource>

/** The policy of a recovery in which page repair looked at no page, because the WAL had images or it was off. */
export const NO_PAGE_REPAIR = 'none'

/**
 * A start after a crash: how long it took (the server log), and what page repair found in it (`polar_stat_page_repair`).
 * Times in ms since the epoch, pages of 8 kB.
 */
export const RepairedRecovery = z.object({
  kind: z.string(),
  /** `polar_page_repair_policy`, or NO_PAGE_REPAIR. */
  policy: z.string(),
  /** When page repair began; where it looked at nothing, when the start began. */
  startedAt: z.number(),
  /** When page repair ended. */
  endedAt: z.number().nullable(),
  /** The whole start, until clients were let in; null where the log does not say. Left out by older agents. */
  start: z.object({ beganAt: z.number(), readyAt: z.number() }).nullable().optional(),
  checked: z.number(),
  torn: z.number(),
  repaired: z.number(),
  /**
   * Torn pages that need no source: visibility maps that were cleared and free space maps that were zeroed, and blocks
   * that the source had dropped. Left out by older agents.
   */
  cleared: z.number().optional(),
  bytes: z.number(),
  /** Who gave how many pages; left out by older agents. */
  sources: z.array(z.object({ source: z.string(), pages: z.number(), bytes: z.number() })).optional(),
})
export type RepairedRecovery = z.infer<typeof RepairedRecovery>

/** What protects an instance at this moment, and why. */
export const Protection = z.object({
  state: ProtectionState,
  /** ms since the epoch */
  since: z.number(),
  why: z.string(),
  /** The setting; what is in force may differ, and is null in recovery. */
  fullPageWrites: z.boolean(),
  imagesInForce: z.boolean().nullable(),
  guard: z.boolean(),
  sources: z.array(RepairSource),
  recovery: RepairedRecovery.nullable(),
})
export type Protection = z.infer<typeof Protection>

type ProtectionWords = { title: string; tone: 'good' | 'warn' | 'bad'; meaning: string }

type ProtectionSeen = Pick<Protection, 'state' | 'imagesInForce'> & {
  sources: readonly Pick<RepairSource, 'source' | 'healthy'>[]
}

/** What a person reads for the state of an instance, and how bad it is. */
export function protectionWords(p: ProtectionSeen): ProtectionWords {
  const healthy = p.sources.filter((s) => s.healthy).map((s) => s.source)
  if (p.state === 'protected' && healthy.includes(FLASHBACK_LOG_SOURCE))
    return healthy.length === 1 ? wordsOfLog : wordsOfLogAndSource
  return (p.imagesInForce === null ? wordsOfStandby : wordsOfPrimary)[p.state]
}

const wordsOfPrimary: Record<ProtectionState, ProtectionWords> = {
  full_page_writes: {
    title: 'Protected by full-page images',
    tone: 'good',
    meaning: 'The WAL has a full-page image of every page that a crash may tear.',
  },
  protected: {
    title: 'Protected by a standby',
    tone: 'good',
    meaning:
      'Full-page images are omitted. A page torn by a crash is fetched from the standby. A power failure that stops both hosts at once can tear the same page on both: a flashback log in sync mode covers that, a standby does not.',
  },
  exposed: {
    title: 'Exposed',
    tone: 'bad',
    meaning:
      'A page torn now could not be restored. The guard re-enables full-page images when no page repair source is healthy for longer than polar_page_repair_grace; they protect once a checkpoint with them is complete.',
  },
  overridden: {
    title: 'Exposed: the guard is off',
    tone: 'bad',
    meaning:
      'full_page_writes alone decides about full-page images, whatever the state of the page repair sources.',
  },
}

const wordsOfLog: ProtectionWords = {
  title: 'Protected by its flashback log',
  tone: 'good',
  meaning:
    'The WAL may lack full-page images. A page torn by a crash is restored from the instance’s own flashback log, which needs no other host: also after a power failure that stops every member at once.',
}

const wordsOfLogAndSource: ProtectionWords = {
  title: 'Protected by its flashback log and another member',
  tone: 'good',
  meaning:
    'The WAL may lack full-page images. A page torn by a crash is restored from the instance’s own flashback log, else fetched from another member. The log also serves after a power failure that stops every member at once.',
}

/** A standby replays WAL that its primary writes: its own guard decides nothing, and its sources are other ones. */
const wordsOfStandby: Record<ProtectionState, ProtectionWords> = {
  full_page_writes: {
    ...wordsOfPrimary.full_page_writes,
    meaning: 'The WAL from its primary has a full-page image of every page that a crash may tear.',
  },
  protected: {
    title: 'Protected by another member',
    tone: 'good',
    meaning:
      'The WAL from its primary may lack full-page images. A page torn by a crash is fetched from the primary or another standby.',
  },
  exposed: {
    ...wordsOfPrimary.exposed,
    meaning:
      'A page torn now could not be restored: this standby has no page repair source that it can rely on. Its primary decides about full-page images.',
  },
  overridden: wordsOfPrimary.overridden,
}
