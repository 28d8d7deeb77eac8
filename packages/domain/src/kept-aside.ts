import { z } from 'zod'
import { formatBytes } from './format'
import { Lsn } from './lsn'

/** Names a directory beside the data directory: when it was kept, in UTC, and the timeline that the member was on. */
export const KeptAsideName = z.string().regex(/^kept-aside-\d{8}T\d{9}Z-\d{1,10}$/)
export type KeptAsideName = z.infer<typeof KeptAsideName>

/** As many an instance may have; where one more is needed a person decides what may go. */
export const KEPT_ASIDE_MAX = 8

/** WAL that only one member had, copied aside before its rejoin took it back. */
export const KeptAside = z.object({
  name: KeptAsideName,
  /** When, ms since the epoch by the clock of the host. */
  at: z.number(),
  systemIdentifier: z.string(),
  /** The newest timeline that the member was on. */
  timeline: z.number().int(),
  /** Where its history left that of the primary; null where that is not known. */
  forkLsn: Lsn.nullable(),
  /** The end of its WAL; null where that could not be read. */
  endLsn: Lsn.nullable(),
  /** What is kept begins here: later than the fork where the member had removed WAL already, earlier where that is unknown. */
  fromLsn: Lsn,
  /** From the fork to the end; null where one of them is unknown. */
  bytes: z.number().nullable(),
  /** Transactions that committed after the fork, by the records in what is kept; null where they could not all be read. */
  commits: z.number().int().nullable(),
  /** What is unknown, and why; null where all is known. */
  unknown: z.string().nullable(),
  /** Whom it was to follow then. */
  primary: z.object({ name: z.string(), timeline: z.number().int() }),
  /** How many files, and what they take. */
  files: z.number().int(),
  fileBytes: z.number(),
})
export type KeptAside = z.infer<typeof KeptAside>

/** What only a member had: null is unknown, which is not nothing. */
export type OwnWalCounted = Pick<KeptAside, 'bytes' | 'commits'>

const transactions = (commits: number | null): string => {
  if (commits === null) return 'an unknown number of committed transactions'
  return `${commits.toLocaleString('en-US')} committed ${commits === 1 ? 'transaction' : 'transactions'}`
}

/** `3.1 MB of WAL, 1,204 committed transactions` */
export const ownWalWords = ({ bytes, commits }: OwnWalCounted): string =>
  `${bytes === null ? 'an unknown amount' : formatBytes(bytes)} of WAL, ${transactions(commits)}`
