import { type ClusterMember, type ClusterObserved, primaryOf, standbySeenOf } from './cluster'
import type { Fault } from './fault'
import { reportedTimeline } from './holdings/record'
import { along, type Timeline, type WalPosition } from './holdings/wal-position'
import { fencedWords } from './member-role'
import type { ReplicationObserved, StandbySeen } from './replication'

/** The member that is the primary and seen to run as one; undefined while nobody is. */
export function runningPrimary(cluster: ClusterObserved): ClusterMember | undefined {
  const primary = primaryOf(cluster)
  return primary && answers(primary) && primary.state === 'running' && primary.role === 'primary'
    ? primary
    : undefined
}

/** Gets WAL from its primary, though it may have much to catch up on. */
export const isConnected = (seen: StandbySeen | undefined): boolean =>
  seen?.state === 'streaming' || seen?.state === 'catchup'

const answers = (m: ClusterMember) => m.hostState === 'online' && m.state !== 'unknown'

/** The history that standbys have to be on: as its primary reports it, else as it is recorded. */
function historyOf(cluster: ClusterObserved): Timeline | null {
  const reported = reportedTimeline(runningPrimary(cluster)?.replication ?? null)
  return reported?.ancestors ? reported : (cluster.holdings?.timeline ?? null)
}

/** WAL that a member has for certain: of one that has received nothing since its start, what it has replayed. */
function heldForCertain(seen: ReplicationObserved | null): WalPosition | null {
  const lsn = seen?.endLsn ?? seen?.replayedLsn
  const timeline = reportedTimeline(seen)
  return lsn && timeline ? { ...timeline, lsn } : null
}

/**
 * Where a standby has left the history of its cluster: it has WAL that the primary never had, and cannot follow it. Null
 * where it has not, and where that cannot be proven.
 */
export function partedAt(cluster: ClusterObserved, member: ClusterMember): string | null {
  if (!answers(member) || member.instanceId === cluster.primaryInstanceId) return null
  if (isConnected(standbySeenOf(runningPrimary(cluster), member))) return null
  const on = along(heldForCertain(member.replication), historyOf(cluster))
  return on?.left ? on.reach.lsn : null
}

/** Why no commit may be made to wait for a member: it would never, or not for now, confirm one. Null where it follows. */
export function whyNotFollowing(cluster: ClusterObserved, member: ClusterMember): Fault | null {
  const { name, hostName } = member
  const primary = runningPrimary(cluster)
  const connected = isConnected(standbySeenOf(primary, member))
  // an engine outlives its agent: one that is away for a moment says nothing of a standby that is seen to stream
  const away = member.hostState === 'stale' && member.state !== 'unknown' && connected
  if (!answers(member) && !away)
    return {
      code: 'standby.silent',
      message: `the state of "${name}" is unknown: host "${hostName}" does not answer`,
    }
  if (member.memberRole === 'fenced' || member.fenced)
    return { code: 'standby.fenced', message: `"${name}" is ${fencedWords(member)}`, hint: 'Rejoin it.' }
  if (member.state !== 'running')
    return { code: 'standby.not_running', message: `"${name}" is ${member.state}`, detail: member.because }
  const parted = partedAt(cluster, member)
  if (parted !== null)
    return {
      code: 'standby.diverged',
      message: `"${name}" diverged from its cluster at ${parted}`,
      hint: 'Rejoin it.',
    }
  if (primary && !connected)
    return {
      code: 'standby.not_streaming',
      message: `"${name}" does not stream from "${primary.name}"`,
      detail: member.whyNotStreaming ?? null,
    }
  return null
}
