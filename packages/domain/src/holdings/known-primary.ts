import { z } from 'zod'
import { HeldBack } from '../automatic-failover'
import type { ClusterObserved } from '../cluster'
import { InstanceId } from '../ids'
import { type ClusterHoldings, newestRecorded, reportedTimeline } from './record'
import type { Timeline } from './wal-position'

/** PostgreSQL's timelines are 32 bits; the control database keeps them signed. */
const TIMELINE_MAX = 2 ** 31 - 1

/** Who is the primary of a cluster, and on which timeline: as the console reports it to the agents of its members. */
export const PrimaryTold = z.object({
  instanceId: InstanceId,
  timeline: z.number().int().min(1).max(TIMELINE_MAX),
  /**
   * The cluster fails over automatically: its members start as a primary by an order only. Null: it does not any more. Left out
   * by older consoles, and by who does not know: what was reported before stays. Since contract 1.12.
   */
  heldBack: HeldBack.nullish(),
})
export type PrimaryTold = z.infer<typeof PrimaryTold>

/**
 * What an agent keeps of a member's cluster: the primary on the newest timeline that an order named. No engine writes it, so
 * an instance's superuser cannot.
 */
export const PrimaryKnown = PrimaryTold.extend({ at: z.number() })
export type PrimaryKnown = z.infer<typeof PrimaryKnown>

/** What the console's record reports to the agents of a cluster's members; null while the primary's timeline is not known. */
export function primaryToTell(
  cluster: Pick<ClusterObserved, 'primaryInstanceId' | 'holdings' | 'automatic'>,
): PrimaryTold | null {
  const timeline = cluster.holdings?.timeline?.timeline
  const { automatic } = cluster
  const heldBack = automatic ? HeldBack.parse(automatic) : automatic
  return timeline
    ? { instanceId: cluster.primaryInstanceId, timeline, ...(heldBack === undefined ? {} : { heldBack }) }
    : null
}

/**
 * Whether an agent knows of a promotion that the record does not: the record is older than the cluster then. A promotion
 * that is recorded as begun explains the timeline that it began, and no later one where it is known which that is.
 */
export function isNewerThanRecord(
  known: PrimaryTold,
  cluster: Pick<ClusterObserved, 'primaryInstanceId' | 'members'> & {
    holdings: Pick<ClusterHoldings, 'timeline' | 'begun' | 'explained' | 'promotions'>
  },
): boolean {
  const { holdings, members, primaryInstanceId } = cluster
  const recorded = newestRecorded(holdings)
  const begun = holdings.promotions.some((p) => p.instanceId === known.instanceId)
  if (known.timeline <= (begun ? recorded + 1 : recorded)) return false
  if (holdings.timeline !== null) return true
  // which one the primary before it was on had not been reported yet when its promotion was recorded
  if (begun) return false
  // the timeline of the recorded primary is not known, so only another one is news; and a standby that was given a cluster of
  // its own still knows the primary of the one that it left
  return known.instanceId !== primaryInstanceId && members.some((m) => m.instanceId === known.instanceId)
}

/** Who is the primary by what members report, or why that is not proven. */
export type PrimaryReported =
  | { proven: true; instanceId: InstanceId; timeline: Timeline; following: InstanceId[] }
  | { proven: false; why: string }

/**
 * Who is the primary of a cluster whose record is older than it. Proven where every member's host answers, all agents that
 * know of the newest promotion name the same member, that member's own agent is among them, it runs as the primary on that
 * very timeline, and every other member is a standby, is fenced, or was informed as well. `following`: the members that were ordered to follow it and are standbys.
 */
export function reportedPrimary(cluster: Pick<ClusterObserved, 'members'>): PrimaryReported {
  const unproven = (why: string): PrimaryReported => ({ proven: false, why })
  const silent = cluster.members.find((m) => m.hostState !== 'online' || m.state === 'unknown')
  if (silent) return unproven(`Host "${silent.hostName}" with "${silent.name}" does not answer.`)
  const newest = Math.max(0, ...cluster.members.map((m) => m.primaryKnown?.timeline ?? 0))
  const told = cluster.members.filter((m) => m.primaryKnown?.timeline === newest)
  const named = new Set(told.map((m) => m.primaryKnown?.instanceId))
  if (newest === 0 || named.size !== 1)
    return unproven(
      named.size === 0
        ? 'No agent was informed of a promotion.'
        : `Agents disagree on the primary of timeline ${newest}.`,
    )
  const primary = cluster.members.find((m) => named.has(m.instanceId))
  if (!primary) return unproven(`The primary of timeline ${newest} is no member any more.`)
  if (!told.includes(primary))
    return unproven(`The agent of "${primary.name}" itself was not informed of timeline ${newest}.`)
  const timeline = reportedTimeline(primary.replication)
  const runs = primary.state === 'running' && primary.role === 'primary' && !primary.fenced
  if (!runs || timeline?.timeline !== newest)
    return unproven(`"${primary.name}" does not run as the primary on timeline ${newest}.`)
  const second = cluster.members.find((m) => m !== primary && m.role === 'primary')
  if (second) return unproven(`"${second.name}" is a primary, too.`)
  // who does not run says nothing of its role; an honest takeover has informed or fenced everybody else
  const other = cluster.members.find((m) => m.role !== 'standby' && !m.fenced && !told.includes(m))
  if (other)
    return unproven(
      `"${other.name}" was not informed of timeline ${newest} and is no standby: it may be the primary.`,
    )
  return {
    proven: true,
    instanceId: primary.instanceId,
    timeline,
    following: told
      .filter((m) => m !== primary && m.role === 'standby' && !m.fenced)
      .map((m) => m.instanceId),
  }
}
