import { type AutomaticFailover, COMMIT_FLOOR, floorCovers } from './automatic-failover'
import { type ClusterMember, type ClusterObserved, primaryOf, unsettledMembers } from './cluster'
import type { Fault } from './fault'
import { type SynchronousStandbys, waitsForStandbys } from './replication'

/** The standbys of a set that can take over: all of it but the primary. */
function listedStandbys(cluster: ClusterObserved, synchronous: SynchronousStandbys | null): ClusterMember[] {
  const ids: string[] = synchronous?.instanceIds ?? []
  return cluster.members.filter(
    (m) => ids.includes(m.instanceId) && m.instanceId !== cluster.primaryInstanceId,
  )
}

/**
 * How many standbys of the set have to have lost the primary so that it can acknowledge no commit that waits: with k of
 * them of which n confirm, k - n + 1.
 */
export const isolationQuorum = ({ instanceIds, count }: Pick<SynchronousStandbys, 'instanceIds' | 'count'>) =>
  instanceIds.length - count + 1

/**
 * Why a cluster must not fail over automatically, each a reason on its own; empty where it may. Pure: dialog, command and
 * operation refuse by the same.
 */
export function automaticBlockers(
  cluster: ClusterObserved,
  { synchronous, commitMode }: Pick<ClusterObserved, 'synchronous' | 'commitMode'> = cluster,
): Fault[] {
  const blockers: Fault[] = []
  if (!synchronous)
    blockers.push({
      code: 'automatic.asynchronous',
      message: 'commits wait for no standby',
      detail: 'An automatic failover could lose the commits that the primary acknowledged last.',
      hint: 'Turn on synchronous replication with a strict set.',
    })
  else if (!synchronous.strict)
    blockers.push({
      code: 'automatic.not_strict',
      message: 'commits stop waiting for standbys where too few are left',
      hint: 'Make the synchronous set strict.',
    })
  if (!waitsForStandbys(commitMode))
    blockers.push({
      code: 'automatic.level',
      message: `commits of level "${commitMode}" wait for no standby`,
      hint: 'Set the level to remote_write, on or remote_apply.',
    })
  const listed = listedStandbys(cluster, synchronous)
  if (synchronous && listed.length < 2)
    blockers.push({
      code: 'automatic.too_few_standbys',
      message: `commits wait for ${listed.length === 1 ? 'one standby' : 'no standby'} at most`,
      detail: 'The standby that takes over needs another one that confirms its commits.',
      hint: 'Have commits wait for any of two standbys, or more.',
    })
  const primary = primaryOf(cluster)
  const hosts = new Set([primary, ...listed].map((m) => m?.hostId))
  if (synchronous && hosts.size < 3)
    blockers.push({
      code: 'automatic.too_few_hosts',
      message: `the primary and the standbys that commits wait for are on ${hosts.size === 1 ? 'one host' : `${hosts.size} hosts`}`,
      detail: 'The loss of one host must leave two.',
      hint: 'Place them on three hosts or more.',
    })
  for (const m of [primary, ...listed])
    if (m?.replication && (m.replication.commitFloor ?? null) === null)
      blockers.push({
        code: 'automatic.no_floor',
        message: `the engine of "${m.name}" has no ${COMMIT_FLOOR}`,
        detail: 'A session could commit without waiting for standbys.',
        hint: 'Run "./floe up" on its host, then restart the instance.',
      })
  for (const m of unsettledMembers(cluster))
    blockers.push({
      code: 'promotion.unsettled',
      message: `instance "${m.name}" may have been promoted`,
      detail: `Its promotion was started; the outcome is unknown until host "${m.hostName}" answers.`,
      hint: 'Bring its host back, or use a failover.',
    })
  return blockers
}

/**
 * What keeps a cluster from failing over automatically if its primary were lost at this moment: too few of the standbys that have
 * to report so are heard, or none could take over. Null where nothing does. One that is stopped or fenced counts as a witness:
 * it confirms no commit. Pure: card and command say it alike.
 */
export function automaticShortage(cluster: ClusterObserved): Fault | null {
  const { synchronous } = cluster
  if (!synchronous) return null
  const listed = listedStandbys(cluster, synchronous)
  const silent = listed.filter((m) => !isHeard(m))
  const needed = isolationQuorum(synchronous)
  const shortage = (detail: string): Fault => ({
    code: 'automatic.standbys_away',
    message: 'a primary that is lost now is not replaced automatically',
    detail,
  })
  if (listed.length - silent.length < needed)
    return shortage(
      `${silent.map((m) => `"${m.name}" on host "${m.hostName}" does not answer.`).join(' ')} ${needed} of ${synchronous.instanceIds.length} synchronous standbys have to report that they lost it.`,
    )
  if (listed.some((m) => isHeard(m) && m.memberRole === 'standby' && m.state === 'running')) return null
  const why = (m: ClusterMember) =>
    `"${m.name}" ${isHeard(m) ? (m.memberRole === 'fenced' ? 'has to be rejoined' : `is ${m.state}`) : 'does not answer'}.`
  return shortage(`No synchronous standby could take over. ${listed.map(why).join(' ')}`)
}

/** A report that is older than this says nothing of now. A member is reported every second. */
export const FRESH_MS = 3_000

/**
 * What has been observed of a cluster over time, by one monotonic clock in ms; created again after a standstill of the
 * observer, so that no silence of its own is taken for another's.
 */
export type Watched = {
  /** Of which timeline and primary this is. */
  of: string
  /** When the primary was last known to run. */
  primarySeenAt: number
  /** When each standby of the set had last heard its primary. */
  heardAt: ReadonlyMap<string, number>
}

const isFresh = (m: ClusterMember) => m.ageMs !== null && m.ageMs < FRESH_MS && m.state !== 'unknown'
/** What its agent says of it counts. */
const isHeard = (m: ClusterMember) => isFresh(m) && m.hostState === 'online'

/** What one more look adds to what was seen. */
export function watch(cluster: ClusterObserved, before: Watched | null, now: number): Watched {
  const of = `${cluster.primaryInstanceId} ${cluster.holdings?.timeline?.timeline ?? 0}`
  const was = before?.of === of ? before : null
  const primary = primaryOf(cluster)
  const runs = primary?.state === 'running' && primary.role === 'primary' && primary.ageMs !== null
  const primarySeenAt = Math.max(was?.primarySeenAt ?? now, runs ? now - (primary.ageMs ?? 0) : 0)
  const heardAt = new Map<string, number>()
  for (const m of listedStandbys(cluster, cluster.synchronous)) {
    const receiver = m.replication?.receiver
    const hears = m.state === 'running' && receiver?.status === 'streaming' && receiver.silentMs !== null
    const heard = hears ? now - (m.ageMs ?? 0) - (receiver.silentMs ?? 0) : 0
    heardAt.set(m.instanceId, Math.max(was?.heardAt.get(m.instanceId) ?? now, heard))
  }
  return { of, primarySeenAt, heardAt }
}

/** What is done about a cluster that fails over automatically, and why; `why` is one sentence that a person reads. */
export type AutomaticDecision =
  /** Nothing is wrong. */
  | { do: 'nothing' }
  /** Something is, and it is too early, or not to be done. */
  | { do: 'decline'; why: string }
  /** `due`: nothing but its own start that is still at work keeps it from a failover. */
  | { do: 'wait'; why: string; due?: true }
  /** The primary has ended and nobody else was promoted: it starts again, as the primary. */
  | { do: 'start'; why: string }
  | { do: 'failover'; why: string[]; candidate: string; unreachableHost: string | null }

/** What else bears on the decision. */
export type AutomaticContext = {
  settings: AutomaticFailover
  watched: Watched
  /** Same clock as `watched`. */
  now: number
  /** What is recorded of the cluster may be older than it: the control database was restored. */
  inDoubt: boolean
  /** An operation is open on the cluster; `own`: a start that was decided here. */
  open: { title: string; own: boolean } | null
  /** Since the last automatic failover that succeeded; null where there was none. */
  sinceLastMs: number | null
  /** Of the present primary: how often a start and a failover were decided and did not help. */
  tries: { start: number; failover: number }
  /** The best standby by what was last seen, with what stands against it. */
  candidate: { instanceId: string; name: string; blockers: Fault[] } | null
}

/** After so many that did not help a person has to look. */
export const AUTOMATIC_TRIES = { start: 1, failover: 3 } as const

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`

/**
 * Whether a cluster fails over now. Two independent witnesses have to agree for as long as the settings say: the primary's
 * agent (it says that the primary does not run, or it is silent), and as many standbys of the synchronous set as leave the
 * primary nobody to acknowledge a commit to. A standby that still hears the primary keeps it from it, unless the primary's own
 * agent says that it does not run. Pure.
 */
export function decideFailover(cluster: ClusterObserved, context: AutomaticContext): AutomaticDecision {
  const { settings, watched, now, open, tries, candidate } = context
  const primary = primaryOf(cluster)
  const { synchronous } = cluster
  if (!primary) return { do: 'decline', why: 'The cluster has no member that is recorded as its primary.' }
  const downMs = now - watched.primarySeenAt
  if (downMs < FRESH_MS && (primary.state === 'running' || !isFresh(primary))) return { do: 'nothing' }
  const agentSays = isHeard(primary)
  const down = agentSays
    ? `The agent of "${primary.name}" has reported it as ${primary.state} for ${seconds(downMs)}.`
    : `Host "${primary.hostName}" of the primary "${primary.name}" has not answered for ${seconds(downMs)}.`
  const decline = (why: string): AutomaticDecision => ({ do: 'decline', why: `${down} ${why}` })
  const wait = (why: string): AutomaticDecision => ({ do: 'wait', why: `${down} ${why}` })

  if (context.inDoubt)
    return decline('The record may be older than the cluster: a person has to decide first.')
  if (agentSays && primary.intent === 'stopped') return { do: 'nothing' }
  if (agentSays && primary.fenced)
    return decline(`"${primary.name}" is fenced (${primary.fenced.reason}): a person has to decide.`)
  const unsettled = unsettledMembers(cluster)[0]
  if (unsettled)
    return decline(`"${unsettled.name}" may have been promoted: its role has to be determined first.`)
  if (open && !open.own) return wait(`Operation "${open.title}" has not ended.`)

  const due = downMs >= settings.afterMs
  if (agentSays && !due && !open && tries.start < AUTOMATIC_TRIES.start && startable.includes(primary.state))
    return { do: 'start', why: `${down} No other member was promoted: it starts as the primary again.` }
  if (!due) return wait(`A failover is decided after ${seconds(settings.afterMs)}.`)

  if (!synchronous?.strict || !waitsForStandbys(cluster.commitMode))
    return decline('Commits wait for no strict set of standbys.')
  const floor = primary.replication?.commitFloor
  // while it does not answer its agent reports nothing of its engine: then what is recorded of it counts
  const covers = primary.replication
    ? floorCovers(floor, cluster.commitMode)
    : cluster.holdings?.floor === true
  if (!covers)
    return decline(
      `${primary.replication ? `It last reported ${COMMIT_FLOOR} = ${floor ?? 'nothing'}` : `Its ${COMMIT_FLOOR} is not recorded`}: sessions could commit without waiting for standbys.`,
    )
  if (!primary.primaryKnown?.heldBack)
    return decline(`The agent of "${primary.name}" does not hold it back after a restart.`)

  const needed = isolationQuorum(synchronous)
  const standbys = listedStandbys(cluster, synchronous).map((m) => ({
    name: m.name,
    fresh: isHeard(m),
    quietMs: now - (watched.heardAt.get(m.instanceId) ?? now),
  }))
  const hears = standbys.find((s) => s.fresh && s.quietMs < settings.afterMs)
  if (hears && !agentSays)
    return wait(`"${hears.name}" received a message from it ${seconds(Math.max(hears.quietMs, 0))} ago.`)
  const lost = standbys.filter((s) => s.fresh && s.quietMs >= settings.afterMs)
  if (lost.length < needed)
    return wait(
      [
        `${needed} of ${standbys.length} synchronous standbys have to report that they lost it; ${lost.length === 0 ? 'none does' : `only ${lost.map((s) => `"${s.name}"`).join(', ')} ${lost.length === 1 ? 'does' : 'do'}`}.`,
        ...standbys.flatMap((s) => (s.fresh ? [] : `"${s.name}" does not answer.`)),
      ].join(' '),
    )
  if (tries.failover >= AUTOMATIC_TRIES.failover)
    return decline(`${tries.failover} failovers did not succeed: a person has to decide.`)
  if (context.sinceLastMs !== null && context.sinceLastMs < settings.minIntervalMs)
    return decline(
      `The last automatic failover was ${seconds(context.sinceLastMs)} ago; the minimum interval is ${seconds(settings.minIntervalMs)}.`,
    )
  if (!candidate) return decline('No standby can take over.')
  const [blocker] = candidate.blockers
  if (blocker) return decline(`"${candidate.name}" cannot take over: ${blocker.message}.`)
  if (open) return { do: 'wait', why: `${down} Its start is cancelled first.`, due: true }
  return {
    do: 'failover',
    candidate: candidate.instanceId,
    unreachableHost: agentSays ? null : primary.hostName,
    why: [
      down,
      ...lost.map((s) => `"${s.name}" has received nothing from it for ${seconds(s.quietMs)}.`),
      `Without ${needed} of its ${synchronous.instanceIds.length} synchronous standbys the primary can acknowledge no commit.`,
    ],
  }
}

/** States in which nothing of an engine works, and a start helps. */
const startable: readonly string[] = ['crashed', 'stopped']
