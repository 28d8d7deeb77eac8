import { z } from 'zod'
import { AutomaticFailover, AutomaticWord } from './automatic-failover'
import { ConnectionTarget } from './connection'
import { InstanceEngine } from './engine-build'
import type { Fault } from './fault'
import { FlashbackLog } from './flashback'
import { PrimaryKnown } from './holdings/known-primary'
import { ClusterHoldings, reportedEnd, unknownHoldings } from './holdings/record'
import { type Answer, type AskedMember, type HoldingsRecord, judgeHoldings } from './holdings/verdict'
import { relate } from './holdings/wal-position'
import { HostState } from './host'
import { HostId, InstanceId } from './ids'
import { InstanceIntent, InstanceRole, InstanceState } from './instance'
import { MemberLogins } from './member-login'
import { fencedWords, MemberRole } from './member-role'
import { PageRepair } from './page-repair'
import { Protection } from './protection'
import { RemoteAccess } from './remote-access'
import {
  CommitMode,
  exactBytes,
  lsnDistance,
  ReplicationObserved,
  type StandbySeen,
  SynchronousStandbys,
  waitsForStandbys,
} from './replication'
import { SharedServerSeen } from './shared-server'

export const ClusterId = z.uuid().brand<'ClusterId'>()
export type ClusterId = z.infer<typeof ClusterId>

/** Who controls the instances of a cluster: Floe's agents, or (not yet) an existing high-availability engine. */
export const ClusterControl = z.enum(['agent'])
export type ClusterControl = z.infer<typeof ClusterControl>

/** A member as it is stored: what it is meant to be and what was last seen of it. */
export const ClusterMember = z.object({
  instanceId: InstanceId,
  name: z.string(),
  hostId: HostId,
  hostName: z.string(),
  /** Of its host, as a person named it; null while nobody has. */
  powerSupply: z.string().nullish(),
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
  /** Its flashback log, as last seen; left out by older agents. */
  flashback: FlashbackLog.nullish(),
  /** Whether its sessions share backends, as last seen; left out by older agents. */
  sharedServer: SharedServerSeen.nullish(),
  /** The roles that it logs in with at other members; left out by older agents. */
  logins: MemberLogins.nullish(),
  /** How clients on other hosts come in; null while unknown. */
  remoteAccess: RemoteAccess.nullish(),
  /** The newest primary that its agent was informed of; left out by older agents. */
  primaryKnown: PrimaryKnown.nullish(),
  /** Why it must not start, where its agent has fenced it. */
  fenced: z.object({ at: z.number(), reason: z.string() }).nullable(),
  /** What was asked of it. */
  intent: InstanceIntent.optional(),
  /** What the engine of a standby without a WAL receiver said last; left out by older agents. */
  whyNotStreaming: z.string().nullish(),
  /** Of which build its engine is; left out by older agents. */
  engine: InstanceEngine.nullish(),
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
  /** Who may hold acknowledged commits; nothing is known where left out. */
  holdings: ClusterHoldings.optional(),
  /** How it fails over automatically; null where it does not, left out where that is not known. */
  automatic: AutomaticFailover.nullish(),
  /** What was decided about that last; null while nothing is wrong. */
  automaticWord: AutomaticWord.nullish(),
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
   * Bytes of WAL that would be lost, by the newest positions: a forecast. 0 for a switchover, and for a failover that is
   * to be proven; null where it cannot be known.
   */
  expectedLossBytes: number | null
  /** True where a failover could be proven to lose nothing, if positions stay as they are. */
  lossless: boolean
  /** What each member holds, as last seen, beside this one. */
  asked: AskedMember[]
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
  const open = unsettledMembers(cluster).includes(member)
  // one that was promoted unseen can take over: it only has to be recorded
  const blockers = [...memberBlockers(member, primary, open && purpose === 'failover')]
  const lagBytes = lagOf(primary, member)
  const answers = forecastAnswers(cluster, member)
  const verdict = judgeHoldings(holdingsRecordOf(cluster), answers, member.instanceId)
  const candidate = {
    instanceId: member.instanceId,
    name: member.name,
    hostName: member.hostName,
    lagBytes,
    asked: verdict.kind === 'proven' ? verdict.proof.asked : verdict.asked,
  }
  if (purpose === 'switchover') {
    blockers.push(...switchoverBlockers(cluster, primary, member))
    const toReplay = lsnDistance(member.replication?.replayedLsn, primary?.replication?.endLsn)
    const notes =
      toReplay !== null && toReplay > 64 * 1024 * 1024
        ? [`It has to replay ${exactBytes(toReplay)} of WAL first; clients wait that long.`]
        : []
    return { ...candidate, blockers, notes, expectedLossBytes: 0, lossless: true }
  }
  const notes: string[] = []
  const running = primary !== undefined && !stale(primary) && primary.state === 'running'
  const doubts = verdict.kind === 'proven' ? [] : verdict.doubts
  // a standby that has received nothing since its start is measured once it is isolated
  const unmeasured = answers.filter((a) => a.state === 'isolated' && a.end === null).map((a) => `"${a.name}"`)
  const later = unmeasured.length > 0 ? measuredLater : running ? ['candidate.behind'] : []
  // positions of a primary that still writes are of different moments
  const undecided = doubts.length > 0 && doubts.every((d) => later.includes(d.code))
  const lossless = verdict.kind === 'proven' || undecided
  for (const doubt of doubts) {
    if (doubt.code === 'cluster.asynchronous')
      notes.push('Replication is asynchronous: commits that this standby has not received are lost.')
    else if (!undecided) blockers.push(doubt)
  }
  if (undecided)
    notes.push(
      unmeasured.length > 0
        ? `How much WAL ${unmeasured.join(', ')} ${unmeasured.length === 1 ? 'holds' : 'hold'} is measured during the failover, before a standby is promoted.`
        : 'Which standby is furthest ahead is decided during the failover, once the primary is fenced.',
    )
  const known = doubts.every((d) => !unmeasurable.includes(d.code))
  const lossBytes = verdict.kind === 'bounded' ? verdict.lossBytes : known ? lagBytes : null
  return {
    ...candidate,
    blockers,
    notes,
    expectedLossBytes: undecided && unmeasured.length > 0 ? null : lossless ? 0 : lossBytes,
    lossless,
  }
}

/** Doubts that measuring may end. */
const measuredLater = ['candidate.behind', 'candidate.quorum_unseen', 'candidate.position_unknown']

/** Doubts that leave no measure of the loss. */
const unmeasurable = ['promotion.unsettled', 'candidate.diverged', 'history.ambiguous', 'history.unknown']

/** How far a member's WAL is behind its primary's, along one history; null where that is unknown, or where it parted. */
function lagOf(primary: ClusterMember | undefined, member: ClusterMember): number | null {
  const relation = relate(reportedEnd(member.replication), reportedEnd(primary?.replication ?? null))
  if (!relation || relation.kind === 'diverged') return null
  return relation.kind === 'behind' ? lsnDistance(relation.until, primary?.replication?.endLsn) : 0
}

/** What is stored of a cluster, as a verdict takes it. */
export function holdingsRecordOf(cluster: ClusterObserved): HoldingsRecord {
  const { timeline, begun, promotions, rules, weaker, floor } = cluster.holdings ?? unknownHoldings()
  return {
    primaryInstanceId: cluster.primaryInstanceId,
    timeline,
    begun,
    unsettled: promotions,
    rules,
    commitMode: cluster.commitMode,
    weaker,
    floor,
  }
}

/** Members of which it is not known whether they were promoted. */
export function unsettledMembers(cluster: ClusterObserved): ClusterMember[] {
  const ids = new Set<string>((cluster.holdings?.promotions ?? []).map((p) => p.instanceId))
  return cluster.members.filter((m) => ids.has(m.instanceId) && m.instanceId !== cluster.primaryInstanceId)
}

/** What members would answer a failover now, by what was last seen of them. */
function forecastAnswers(cluster: ClusterObserved, candidate: ClusterMember): Answer[] {
  return cluster.members.map((m) => {
    const { instanceId, name, hostName } = m
    const end = reportedEnd(m.replication)
    const down = m.state === 'stopped' || m.state === 'crashed'
    const state =
      m.instanceId === candidate.instanceId && !stale(m)
        ? 'isolated'
        : stale(m)
          ? 'silent'
          : m.memberRole === 'standby' && m.state === 'running' && m.role === 'standby'
            ? 'isolated'
            : m.instanceId === cluster.primaryInstanceId && down
              ? 'fenced'
              : m.state === 'running' && m.role === 'primary'
                ? 'primary'
                : 'silent'
    return { instanceId, name, hostName, state, end }
  })
}

function* memberBlockers(
  member: ClusterMember,
  primary: ClusterMember | undefined,
  mayBePromoted: boolean,
): Generator<Fault> {
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
      message: `instance "${member.name}" is ${fencedWords(member)}`,
      detail: 'It was the primary before and may hold commits that no other member has.',
      hint: 'Rejoin it first.',
    }
  else if (member.state !== 'running')
    yield {
      code: 'candidate.not_running',
      message: `instance "${member.name}" is ${member.state}`,
      detail: member.because,
    }
  else if (member.role !== 'standby' && !mayBePromoted)
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

function* switchoverBlockers(
  cluster: ClusterObserved,
  primary: ClusterMember | undefined,
  member: ClusterMember,
): Generator<Fault> {
  for (const m of unsettledMembers(cluster))
    yield {
      code: 'promotion.unsettled',
      message: `instance "${m.name}" may have been promoted`,
      detail: `Its promotion was started; the outcome is unknown until host "${m.hostName}" answers.`,
      hint: 'Bring its host back, or use a failover.',
    }
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
      detail: seen ? `Its state there is "${seen.state}".` : 'It is not connected to the primary.',
      hint: 'Wait until it has caught up, or rejoin it.',
    }
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
  // of a quorum all connected standbys are reported as such
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
