import { z } from 'zod'
import { ConnectionTarget } from './connection'
import type { Fault } from './fault'
import { HostState } from './host'
import { HostId, InstanceId } from './ids'
import { InstanceRole, InstanceState } from './instance'
import { PageRepair } from './page-repair'
import { Protection } from './protection'
import {
  CommitMode,
  exactBytes,
  lsnDistance,
  ReplicationObserved,
  type StandbySeen,
  SynchronousStandbys,
  waitsForStandbys,
} from './replication'

export const ClusterId = z.uuid().brand<'ClusterId'>()
export type ClusterId = z.infer<typeof ClusterId>

/** Who controls the instances of a cluster: Floe's agents, or (not yet) an existing high-availability engine. */
export const ClusterControl = z.enum(['agent'])
export type ClusterControl = z.infer<typeof ClusterControl>

/** What a member is meant to be. `fenced`: a former primary that must not accept a write until it has been rejoined. */
export const MemberRole = z.enum(['primary', 'standby', 'fenced'])
export type MemberRole = z.infer<typeof MemberRole>

/** A member as it is stored: what it is meant to be and what was last seen of it. */
export const ClusterMember = z.object({
  instanceId: InstanceId,
  name: z.string(),
  hostId: HostId,
  hostName: z.string(),
  hostState: HostState,
  memberRole: MemberRole,
  /** `unknown` when the last report is older than 30 s. */
  state: InstanceState,
  because: z.string().nullable(),
  /** As last seen. */
  role: InstanceRole.nullable(),
  ageMs: z.number().nullable(),
  engineVersion: z.string().nullable(),
  systemIdentifier: z.string().nullable(),
  timeline: z.number().int().nullable(),
  connection: ConnectionTarget.nullable(),
  replication: ReplicationObserved.nullable(),
  /** What protects it against torn pages, as last seen; left out by older agents. */
  protection: Protection.nullish(),
  /** Why it must not start, where its agent has fenced it. */
  fenced: z.object({ at: z.number(), reason: z.string() }).nullable(),
})
export type ClusterMember = z.infer<typeof ClusterMember>

export const ClusterObserved = z.object({
  clusterId: ClusterId,
  name: z.string(),
  control: ClusterControl,
  primaryInstanceId: InstanceId,
  synchronous: SynchronousStandbys.nullable(),
  commitMode: CommitMode,
  /** Who gives torn pages back; automaticPageRepair where left out. */
  pageRepair: PageRepair.optional(),
  members: z.array(ClusterMember),
})
export type ClusterObserved = z.infer<typeof ClusterObserved>

/** The member that is meant to be the primary. */
export function primaryOf(cluster: ClusterObserved): ClusterMember | undefined {
  return cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
}

/** A standby's line in its primary's pg_stat_replication. */
export function standbySeenOf(
  primary: Pick<ClusterMember, 'replication'> | undefined,
  standby: Pick<ClusterMember, 'name'>,
): StandbySeen | undefined {
  return primary?.replication?.standbys.find((s) => s.applicationName === standby.name)
}

/** Names of slots and roles allow no hyphen, names of instances no underscore: one can be told from the other. */
const underscored = (name: string) => name.replaceAll('-', '_')
/** The physical slot that a primary keeps for a member. */
export const slotNameOf = (instanceName: string) => `floe_${underscored(instanceName)}`
/** The role that a member replicates with; its password is known to its own host only. */
export const replicationRoleOf = (instanceName: string) => `floe_standby_${underscored(instanceName)}`

export type CandidatePurpose = 'switchover' | 'failover'

/** A member as a new primary: why it cannot be, and what would be lost. */
export type Candidate = {
  instanceId: InstanceId
  name: string
  hostName: string
  /** Each a reason on its own; empty when it can be promoted. */
  blockers: Fault[]
  /** What a person should know before. */
  notes: string[]
  /** How far behind the primary it is, in bytes of WAL, by the newest positions known; null while unknown. */
  lagBytes: number | null
  /**
   * Bytes of WAL that would be lost. 0 for a switchover, and for a failover to a standby that holds every acknowledged
   * commit; null where it cannot be known.
   */
  expectedLossBytes: number | null
  /** True where no acknowledged commit can be lost. */
  lossless: boolean
}

/** Whether what was last seen of a member can still be relied on. */
const stale = (m: ClusterMember) => m.hostState !== 'online' || m.state === 'unknown'

/**
 * Every standby judged as the next primary, the best first: without a blocker, lossless, least behind, by name. Pure: the
 * same observation gives the same answer in console, command line and operation.
 */
export function judgeCandidates(cluster: ClusterObserved, purpose: CandidatePurpose): Candidate[] {
  const primary = primaryOf(cluster)
  return cluster.members
    .filter((m) => m.instanceId !== cluster.primaryInstanceId)
    .map((m) => judge(cluster, primary, m, purpose))
    .sort(
      (a, b) =>
        a.blockers.length - b.blockers.length ||
        Number(b.lossless) - Number(a.lossless) ||
        (a.lagBytes ?? Number.MAX_SAFE_INTEGER) - (b.lagBytes ?? Number.MAX_SAFE_INTEGER) ||
        (a.name < b.name ? -1 : 1),
    )
}

function judge(
  cluster: ClusterObserved,
  primary: ClusterMember | undefined,
  member: ClusterMember,
  purpose: CandidatePurpose,
): Candidate {
  const blockers = [...memberBlockers(member, primary)]
  const behind = lsnDistance(member.replication?.endLsn, primary?.replication?.endLsn)
  const lagBytes = behind === null ? null : Math.max(0, behind)
  const candidate = {
    instanceId: member.instanceId,
    name: member.name,
    hostName: member.hostName,
    lagBytes,
  }
  if (purpose === 'switchover') {
    blockers.push(...switchoverBlockers(primary, member))
    const toReplay = lsnDistance(member.replication?.replayedLsn, primary?.replication?.endLsn)
    const notes =
      toReplay !== null && toReplay > 64 * 1024 * 1024
        ? [`It has ${exactBytes(toReplay)} of WAL to replay first; clients wait that long.`]
        : []
    return { ...candidate, blockers, notes, expectedLossBytes: 0, lossless: true }
  }
  const verdict = judgeLoss(cluster, member)
  if (verdict.blocker) blockers.push(verdict.blocker)
  const notes = [...verdict.notes]
  if (primary && !stale(primary) && primary.state === 'running')
    notes.push('The primary is running: a switchover loses nothing and interrupts less.')
  return {
    ...candidate,
    blockers,
    notes,
    expectedLossBytes: verdict.lossless ? 0 : lagBytes,
    lossless: verdict.lossless,
  }
}

function* memberBlockers(member: ClusterMember, primary: ClusterMember | undefined): Generator<Fault> {
  if (stale(member))
    yield {
      code: 'candidate.host_silent',
      message: `host "${member.hostName}" does not answer`,
      detail:
        member.ageMs === null
          ? 'It was never seen.'
          : `Instance "${member.name}" was last seen ${Math.round(member.ageMs / 1_000)} s ago.`,
    }
  else if (member.memberRole === 'fenced' || member.fenced)
    yield {
      code: 'candidate.fenced',
      message: `instance "${member.name}" is fenced`,
      detail: 'It was the primary before and may hold commits that nobody else has.',
      hint: 'Rejoin it first.',
    }
  else if (member.state !== 'running')
    yield {
      code: 'candidate.not_running',
      message: `instance "${member.name}" is ${member.state}`,
      detail: member.because,
    }
  else if (member.role !== 'standby')
    yield { code: 'candidate.not_standby', message: `instance "${member.name}" is not a standby` }
  if (member.replication?.replayPaused)
    yield {
      code: 'candidate.replay_paused',
      message: `replay is paused on instance "${member.name}"`,
      hint: 'Run "select pg_wal_replay_resume()" there.',
    }
  if (
    primary?.systemIdentifier &&
    member.systemIdentifier &&
    primary.systemIdentifier !== member.systemIdentifier
  )
    yield {
      code: 'candidate.other_system',
      message: `instance "${member.name}" is not a copy of the primary`,
      detail: `Its system identifier is ${member.systemIdentifier}, the primary's ${primary.systemIdentifier}.`,
    }
}

function* switchoverBlockers(primary: ClusterMember | undefined, member: ClusterMember): Generator<Fault> {
  if (!primary || stale(primary) || primary.state !== 'running' || primary.role !== 'primary') {
    yield {
      code: 'switchover.primary_down',
      message: primary
        ? `the primary "${primary.name}" ${stale(primary) ? 'cannot be reached' : `is ${primary.state}`}`
        : 'the cluster has no primary',
      hint: 'A switchover needs a running primary. Use a failover.',
    }
    return
  }
  const seen = standbySeenOf(primary, member)
  if (seen?.state !== 'streaming' && !stale(member))
    yield {
      code: 'candidate.not_streaming',
      message: `instance "${member.name}" does not stream from the primary`,
      detail: seen ? `Its state there is "${seen.state}".` : 'The primary does not know it.',
      hint: 'Wait until it has caught up, or rejoin it.',
    }
}

export type LossVerdict = { lossless: boolean; blocker: Fault | null; notes: string[] }

/**
 * Whether a standby holds every commit that was acknowledged. An acknowledged commit is on at least n of the k listed
 * standbys, so the furthest of any k - n + 1 of them has it. Positions are only final once those standbys receive no more
 * (isolated); before that the same rule is a forecast.
 */
export function judgeLoss(cluster: ClusterObserved, member: ClusterMember): LossVerdict {
  const { synchronous: sync, commitMode } = cluster
  if (!sync || !waitsForStandbys(commitMode))
    return {
      lossless: false,
      blocker: null,
      notes: ['The cluster is asynchronous: what this standby had not received is lost.'],
    }
  const blocked = (blocker: Fault): LossVerdict => ({ lossless: false, blocker, notes: [] })
  const listed = cluster.members.filter(
    (m) => sync.instanceIds.includes(m.instanceId) && m.instanceId !== cluster.primaryInstanceId,
  )
  if (!listed.includes(member))
    return blocked({
      code: 'candidate.not_synchronous',
      message: `instance "${member.name}" is not a synchronous standby`,
      detail: 'Commits were acknowledged without it.',
      hint: 'Choose one of the synchronous standbys.',
    })
  const visible = listed.filter((m) => !stale(m) && m.replication?.endLsn)
  const needed = listed.length - Math.min(sync.count, listed.length) + 1
  if (visible.length < needed)
    return blocked({
      code: 'candidate.quorum_unseen',
      message: `only ${visible.length} of ${listed.length} synchronous standbys can be seen`,
      detail: `${needed} have to be compared to know who holds every acknowledged commit.`,
      hint: 'Bring another synchronous standby back, or accept a loss.',
    })
  const ahead = visible
    .map((m) => ({ m, by: lsnDistance(member.replication?.endLsn, m.replication?.endLsn) }))
    .filter((x) => x.by === null || x.by > 0)
    .sort((a, b) => (b.by ?? 0) - (a.by ?? 0))[0]
  if (!ahead) return { lossless: true, blocker: null, notes: [] }
  // positions of a primary that still writes are of different moments
  const primary = primaryOf(cluster)
  if (primary && !stale(primary) && primary.state === 'running')
    return {
      lossless: true,
      blocker: null,
      notes: ['Which standby is the furthest is only decided once the primary is fenced.'],
    }
  return blocked({
    code: 'candidate.behind',
    message:
      ahead.by === null
        ? `the position of instance "${member.name}" is unknown`
        : `instance "${member.name}" is ${exactBytes(ahead.by)} behind "${ahead.m.name}"`,
    detail: `"${ahead.m.name}" may hold acknowledged commits that it lacks.`,
    hint: `Fail over to "${ahead.m.name}".`,
  })
}

/** When commits wait for ever: fewer synchronous standbys are connected than a primary asks for. Null when all is well. */
export function waitingForStandbys(
  r: ReplicationObserved | null | undefined,
): { connected: number; asked: number; waiting: number } | null {
  if (!r) return null
  const asked = Number(/^(?:FIRST |ANY )?(\d+) ?\(/i.exec(r.synchronousStandbyNames)?.[1] ?? 0)
  const connected = r.standbys.filter(
    (s) => s.state === 'streaming' && (s.syncState === 'sync' || s.syncState === 'quorum'),
  ).length
  // of a quorum all connected standbys are told as such
  return asked > 0 && connected < asked && waitsForStandbys(r.synchronousCommit)
    ? { connected, asked, waiting: r.waitingCommits }
    : null
}

/** The same of a cluster: of its primary, where that can be believed. */
export function commitsWait(cluster: ClusterObserved) {
  const primary = primaryOf(cluster)
  if (!primary || stale(primary) || primary.state !== 'running') return null
  return waitingForStandbys(primary.replication)
}
