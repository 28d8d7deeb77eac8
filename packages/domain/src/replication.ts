import { z } from 'zod'
import { TimelineEnd } from './holdings/wal-position'
import { InstanceId } from './ids'
import { compareLsn, Lsn } from './lsn'

/** PostgreSQL's levels of `synchronous_commit`, the safest first. */
export const commitModes = ['remote_apply', 'on', 'remote_write', 'local', 'off'] as const
export const CommitMode = z.enum(commitModes)
export type CommitMode = z.infer<typeof CommitMode>

/** What a commit waits for at each level, and what each may lose. Without synchronous standbys the first three are `local`. */
export const commitModeWords: Record<CommitMode, { waits: string; mayLose: string }> = {
  remote_apply: {
    waits: 'A commit waits until the synchronous standbys have replayed it: queries there see it.',
    mayLose: 'No acknowledged commit, as long as one synchronous standby is left.',
  },
  on: {
    waits: 'A commit waits until the synchronous standbys have written it to disk.',
    mayLose: 'No acknowledged commit, as long as one synchronous standby is left.',
  },
  remote_write: {
    waits:
      'A commit waits until the synchronous standbys have passed it to their operating system, not until it is on disk.',
    mayLose:
      'The latest acknowledged commits, if the primary is lost and the standby’s machine fails at the same time.',
  },
  local: {
    waits: 'A commit waits for the primary’s own disk only.',
    mayLose: 'Commits that the standbys had not received, if the primary is lost.',
  },
  off: {
    waits: 'A commit waits for nothing.',
    mayLose:
      'The last commits (up to three times wal_writer_delay) after any crash of the primary, and commits that the standbys had not received if it is lost.',
  },
}

/** `synchronous_commit` as set for a database, a role, or a role in a database; both null: for every role. */
export const CommitModeScope = z.object({
  database: z.string().nullable(),
  role: z.string().nullable(),
  /** As it was written: one of the levels, or another word for one (`true`, `no`, …). */
  commitMode: z.string(),
})
export type CommitModeScope = z.infer<typeof CommitModeScope>

/** Levels at which an acknowledged commit is on a synchronous standby. */
export function waitsForStandbys(mode: string): boolean {
  return mode === 'remote_apply' || mode === 'on' || mode === 'remote_write'
}

/**
 * Which standbys a commit waits for: FIRST n of a list in order of preference, or ANY n of it. `strict` keeps commits
 * waiting when a failover leaves too few of them; otherwise the new primary goes on with those that are left.
 */
export const SynchronousStandbys = z.object({
  method: z.enum(['first', 'any']),
  count: z.number().int().min(1).max(8),
  instanceIds: z.array(InstanceId).min(1).max(8),
  strict: z.boolean().default(false),
})
export type SynchronousStandbys = z.infer<typeof SynchronousStandbys>

const quoteName = (name: string) => `"${name.replaceAll('"', '""')}"`

/** A value of `synchronous_standby_names`; empty where there is nobody to wait for. */
export function synchronousStandbyNames(
  sync: Pick<SynchronousStandbys, 'method' | 'count'> | null,
  names: readonly string[],
): string {
  if (!sync || names.length === 0) return ''
  const word = sync.method === 'first' ? 'FIRST' : 'ANY'
  return `${word} ${Math.min(sync.count, names.length)} (${names.map(quoteName).join(', ')})`
}

/** The set after two members changed roles: the former primary takes the place of the one that was promoted. */
export function afterRoleChange(
  sync: SynchronousStandbys | null,
  promoted: InstanceId,
  former: InstanceId,
): SynchronousStandbys | null {
  if (!sync) return null
  const instanceIds = sync.instanceIds.filter((id) => id !== former)
  const at = instanceIds.indexOf(promoted)
  if (at >= 0) instanceIds[at] = former
  return { ...sync, instanceIds }
}

/** The set without a member; null when nobody is left. */
export function withoutMember(
  sync: SynchronousStandbys | null,
  instanceId: string,
): SynchronousStandbys | null {
  const instanceIds = sync?.instanceIds.filter((id) => id !== instanceId) ?? []
  return sync && instanceIds.length > 0
    ? { ...sync, instanceIds, count: Math.min(sync.count, instanceIds.length) }
    : null
}

/** A standby as its primary sees it (pg_stat_replication). Lags are PostgreSQL's, in ms; null while nothing is written. */
export const StandbySeen = z.object({
  applicationName: z.string(),
  pid: z.number().int(),
  clientAddress: z.string().nullable(),
  /** startup, catchup, streaming, backup, stopping */
  state: z.string(),
  sentLsn: Lsn.nullable(),
  writtenLsn: Lsn.nullable(),
  flushedLsn: Lsn.nullable(),
  replayedLsn: Lsn.nullable(),
  writeLagMs: z.number().nullable(),
  flushLagMs: z.number().nullable(),
  replayLagMs: z.number().nullable(),
  /** async, potential, sync, quorum */
  syncState: z.string(),
  /** When it sent its last answer, by its own clock: whether that moves on shows whether it is heard. Since contract 1.12. */
  replyAt: z.number().nullish(),
})
export type StandbySeen = z.infer<typeof StandbySeen>

/** A physical replication slot (pg_replication_slots). */
export const SlotSeen = z.object({
  name: z.string(),
  active: z.boolean(),
  restartLsn: Lsn.nullable(),
  /** reserved, extended, unreserved, lost; null while it holds nothing */
  walStatus: z.string().nullable(),
  /** WAL that is kept for it; null while it holds nothing. */
  retainedBytes: z.number().nullable(),
})
export type SlotSeen = z.infer<typeof SlotSeen>

/** The WAL receiver of a standby (pg_stat_wal_receiver). */
export const ReceiverSeen = z.object({
  status: z.string(),
  senderHost: z.string().nullable(),
  senderPort: z.number().int().nullable(),
  slotName: z.string().nullable(),
  receivedTimeline: z.number().int().nullable(),
  /** Since the last message from the sender, ms. */
  silentMs: z.number().nullable(),
})
export type ReceiverSeen = z.infer<typeof ReceiverSeen>

/** What an instance knows of replication, as of one tick. */
export const ReplicationObserved = z.object({
  at: z.number(),
  /**
   * The end of its WAL on disk. Null of a standby that has received nothing since its start: it may have more than it has
   * replayed.
   */
  endLsn: Lsn.nullable(),
  /** A standby: the end of what it has replayed. */
  replayedLsn: Lsn.nullable(),
  /** Timeline of that WAL. */
  timeline: z.number().int().nullable(),
  replayPaused: z.boolean(),
  /** A standby: age of the last replayed transaction, ms; 0 when everything received is replayed. */
  replayDelayMs: z.number().nullable(),
  standbys: z.array(StandbySeen),
  slots: z.array(SlotSeen),
  receiver: ReceiverSeen.nullable(),
  synchronousStandbyNames: z.string(),
  synchronousCommit: z.string(),
  fullPageWrites: z.boolean(),
  /** Sessions whose commit waits for a synchronous standby at this moment. */
  waitingCommits: z.number().int(),
  /** Timelines before that one, and where each ended; null while not known. Since contract 1.10. */
  ancestors: z.array(TimelineEnd).nullish(),
  /** synchronous_commit as set for databases and roles. Since contract 1.10. */
  commitModes: z.array(CommitModeScope).nullish(),
  /** polar_commit_floor, below which no commit waits; null where the engine has none. Since contract 1.12. */
  commitFloor: z.string().nullish(),
})
export type ReplicationObserved = z.infer<typeof ReplicationObserved>

/** Bytes from one position to another: exact, negative where `to` lies before `from`. Null where either is unknown. */
export function lsnDistance(from: string | null | undefined, to: string | null | undefined): number | null {
  if (!from || !to) return null
  return compareLsn(to, from)
}

/** Bytes for people who must not lose one: never rounded, with separators. `1,234,567 bytes` */
export function exactBytes(bytes: number): string {
  return `${bytes.toLocaleString('en-US')} ${bytes === 1 ? 'byte' : 'bytes'}`
}
