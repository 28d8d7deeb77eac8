import { z } from 'zod'
import { floorWaits } from '../automatic-failover'
import type { InstanceId } from '../ids'
import { compareLsn, type Lsn } from '../lsn'
import { CommitModeScope, type ReplicationObserved } from '../replication'
import { SynchronousRule, TimelineBegun, UnsettledPromotion, withoutWaiting } from './verdict'
import { beginningOf, Timeline, type WalPosition } from './wal-position'

/** A promotion that was begun: by which task, so that its agent can be asked how it ended. */
export const PromotionBegun = UnsettledPromotion.extend({
  operationId: z.uuid(),
  step: z.string(),
  attempt: z.number().int(),
})
export type PromotionBegun = z.infer<typeof PromotionBegun>

/**
 * What is stored of a cluster to know who may hold acknowledged commits. Written before what it allows for is begun, so
 * that it never says less than is true.
 */
export const ClusterHoldings = z.object({
  /** The timeline that its primary began; null until a primary has reported it. */
  timeline: Timeline.nullable().default(null),
  begun: z.array(TimelineBegun).default([]),
  /** The newest timeline that may have been begun besides: by a promotion that was given up and not refuted, or whose history could not be read. */
  explained: z.number().int().default(0),
  /** Begun, and not settled. */
  promotions: z.array(PromotionBegun).default([]),
  /** Sets that may have been in force since commits waited for all of them; the newest last. */
  rules: z.array(SynchronousRule).min(1).default([null]),
  /** Databases and roles that commit with less, or did when not everything had been confirmed since. */
  weaker: z.array(CommitModeScope).nullable().default(null),
  /** No session could commit without waiting for standbys: a floor was in force since commits waited for all of them alike. */
  floor: z.boolean().default(false),
})
export type ClusterHoldings = z.infer<typeof ClusterHoldings>

/** Of a cluster of which nothing is stored: nothing is known, so nothing is proven. */
export const unknownHoldings = (): ClusterHoldings => ClusterHoldings.parse({})

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

/** A set that is about to be in force, beside those that may be. */
export function withRule(holdings: ClusterHoldings, rule: SynchronousRule): ClusterHoldings {
  return { ...holdings, rules: [...holdings.rules.filter((r) => !same(r, rule)), rule] }
}

/** Databases and roles that are about to commit with less. */
export function withWeaker(holdings: ClusterHoldings, scope: CommitModeScope): ClusterHoldings {
  const others = (holdings.weaker ?? []).filter((s) => !same(s, scope))
  // what was never reported stays unknown
  return { ...holdings, weaker: holdings.weaker && [...others, ...withoutWaiting([scope])] }
}

export const withPromotionBegun = (
  holdings: ClusterHoldings,
  promotion: PromotionBegun,
): ClusterHoldings => ({
  ...holdings,
  promotions: [...holdings.promotions.filter((p) => p.operationId !== promotion.operationId), promotion],
})

/** The newest timeline that is recorded of a cluster; 0 where none is. */
export const newestRecorded = ({
  timeline,
  begun,
  explained,
}: Pick<ClusterHoldings, 'timeline' | 'begun' | 'explained'>): number =>
  Math.max(explained, timeline?.timeline ?? 0, ...begun.map((t) => t.timeline))

/**
 * A promotion that matters no more though it may have taken place: its member was fenced and follows the primary. Its agent
 * goes on knowing of the timeline that it began.
 */
export const withPromotionPassed = (holdings: ClusterHoldings, operationId: string): ClusterHoldings => ({
  ...withPromotionSettled(holdings, operationId),
  explained: newestRecorded(holdings) + 1,
})

/** A promotion of which it is certain that it did not take place and cannot any more. */
export const withPromotionSettled = (holdings: ClusterHoldings, operationId: string): ClusterHoldings => ({
  ...holdings,
  promotions: holdings.promotions.filter((p) => p.operationId !== operationId),
})

/** What is known of a member's commits since its promotion; null where it is not known. */
export type PromotedAs = {
  timeline: Timeline | null
  rule: SynchronousRule
  weaker: CommitModeScope[] | null
  floor?: boolean
}

/** Databases and roles that commit with less than waiting for standbys; a floor lifts them all, known or not. */
const weakerAbove = (
  scopes: readonly CommitModeScope[] | null | undefined,
  floor: string | null | undefined,
) => (floorWaits(floor) ? [] : scopes ? withoutWaiting(scopes) : null)

/** The same from what it answered once it was promoted: nothing is taken over from the primary before it. */
export function promotedAs(
  answer: {
    timeline: number
    ancestors?: Timeline['ancestors'] | undefined
    standbyNames?: string | null | undefined
    synchronousCommit?: string | null | undefined
    commitModes?: CommitModeScope[] | null | undefined
    commitFloor?: string | null | undefined
  },
  members: readonly { instanceId: InstanceId; name: string }[],
): PromotedAs {
  const { standbyNames, synchronousCommit, commitModes, commitFloor } = answer
  const level = synchronousCommit && levelAbove(synchronousCommit, commitFloor)
  return {
    timeline: reportedTimeline(answer),
    rule: standbyNames && level ? ruleInForce(standbyNames, level, members) : null,
    weaker: weakerAbove(commitModes, commitFloor),
    floor: floorWaits(commitFloor),
  }
}

/**
 * Another member is the primary. Every other promotion is settled by that: its member is fenced, or a person took it
 * on. What databases and roles committed with before no longer matters: a member on the new timeline has all of it.
 */
export function withPrimary(
  holdings: ClusterHoldings,
  { timeline, rule, weaker, floor = false }: PromotedAs,
): ClusterHoldings {
  // the promoted member's own is one of them
  const passed = holdings.promotions.length > 1 ? newestRecorded(holdings) + 1 : 0
  const after = withTimeline(holdings, timeline)
  return {
    ...after,
    explained: Math.max(after.explained, passed),
    promotions: [],
    rules: [rule],
    weaker,
    floor,
  }
}

/**
 * Of a cluster whose primary was found by what its members report, because the record was older than it: of who holds what
 * nothing else is known.
 */
export const holdingsAsReported = (timeline: Timeline): ClusterHoldings =>
  withTimeline(unknownHoldings(), timeline)

function withTimeline(holdings: ClusterHoldings, timeline: Timeline | null): ClusterHoldings {
  const begin = timeline && beginningOf(timeline)?.lsn
  return {
    ...holdings,
    timeline: begin ? timeline : null,
    explained: Math.max(holdings.explained, begin ? 0 : (timeline?.timeline ?? 0)),
    begun: begin ? [...holdings.begun, { timeline: timeline.timeline, begin }] : holdings.begun,
  }
}

/** Where the WAL of a member ends, by what it reports; null where it does not, or where its history is unknown. */
export function reportedEnd(
  seen: { endLsn: Lsn | null; timeline: number | null; ancestors?: Timeline['ancestors'] | undefined } | null,
): WalPosition | null {
  const timeline = reportedTimeline(seen)
  return seen?.endLsn && timeline ? { ...timeline, lsn: seen.endLsn } : null
}

/** The first timeline has no history; of others an older agent does not report it. */
export function reportedTimeline(
  seen: { timeline: number | null; ancestors?: Timeline['ancestors'] | undefined } | null,
): Timeline | null {
  if (!seen?.timeline) return null
  return { timeline: seen.timeline, ancestors: seen.ancestors ?? (seen.timeline === 1 ? [] : null) }
}

/** The set that an instance's synchronous_standby_names ask for; null for none, and for names that are no members'. */
export function ruleOfNames(
  names: string,
  members: readonly { instanceId: InstanceId; name: string }[],
): SynchronousRule {
  const [, count, list] = /^(?:ANY|FIRST) (\d+) \((.*)\)$/.exec(names) ?? []
  if (!count || !list) return null
  const ids = [...list.matchAll(/"((?:[^"]|"")*)"/g)].map(
    ([, name]) => members.find((m) => m.name === name?.replaceAll('""', '"'))?.instanceId,
  )
  if (ids.length === 0 || ids.length !== list.split(', ').length) return null
  const instanceIds = ids.filter((id) => id !== undefined)
  return instanceIds.length === ids.length ? { count: Number(count), instanceIds } : null
}

/** The set that commits wait for; null also where the level of the instance itself waits for no standby. */
function ruleInForce(
  names: string,
  synchronousCommit: string,
  members: readonly { instanceId: InstanceId; name: string }[],
): SynchronousRule {
  const level = { database: null, role: null, commitMode: synchronousCommit }
  return withoutWaiting([level]).length === 0 ? ruleOfNames(names, members) : null
}

/** What the level of an instance comes to above a floor. */
const levelAbove = (level: string, floor: string | null | undefined): string =>
  floorWaits(floor) ? String(floor) : level

/** What is remembered between reports of a primary: since its WAL ended there, these have been in force. */
export type InForceSince = {
  rule: SynchronousRule
  weaker: CommitModeScope[] | null
  floor: boolean
  endLsn: Lsn
}

/**
 * The record after a report of the primary. What is in force counts beside what was, until as many as a commit waits for
 * have confirmed all that was written before: then it is all that counts. `settled`: it is, and no other report that says
 * the same of it changes that.
 */
export function afterReport(
  holdings: ClusterHoldings,
  seen: Pick<
    ReplicationObserved,
    | 'endLsn'
    | 'timeline'
    | 'ancestors'
    | 'commitModes'
    | 'standbys'
    | 'synchronousStandbyNames'
    | 'synchronousCommit'
    | 'commitFloor'
  >,
  members: readonly { instanceId: InstanceId; name: string }[],
  since: InForceSince | null,
): { holdings: ClusterHoldings; since: InForceSince | null; settled: boolean } {
  const { synchronousStandbyNames: names, synchronousCommit, commitModes, commitFloor } = seen
  const rule = ruleInForce(names, levelAbove(synchronousCommit, commitFloor), members)
  const weaker = weakerAbove(commitModes, commitFloor)
  const floor = floorWaits(commitFloor)
  const timeline = reportedTimeline(seen)
  const base =
    holdings.timeline === null && timeline?.ancestors && holdings.promotions.length === 0
      ? withTimeline(holdings, timeline)
      : holdings
  const inForce =
    since !== null && same(since.rule, rule) && same(since.weaker, weaker) && since.floor === floor
  const alone = { ...base, rules: [rule], weaker, floor }
  if (inForce && confirmed(rule, seen.standbys, members, since.endLsn))
    return { holdings: alone, since, settled: true }
  const beside =
    weaker && base.weaker
      ? [...base.weaker, ...weaker.filter((s) => !base.weaker?.some((o) => same(o, s)))]
      : null
  const both = { ...withRule(base, rule), weaker: beside, floor: base.floor && floor }
  return {
    holdings: both,
    settled: same(both, alone),
    since: inForce ? since : seen.endLsn && { rule, weaker, floor, endLsn: seen.endLsn },
  }
}

function confirmed(
  rule: SynchronousRule,
  standbys: ReplicationObserved['standbys'],
  members: readonly { instanceId: InstanceId; name: string }[],
  endLsn: Lsn,
): boolean {
  if (rule === null) return true
  const names = members.filter((m) => rule.instanceIds.includes(m.instanceId)).map((m) => m.name)
  const there = standbys.filter(
    (s) => s.state === 'streaming' && s.flushedLsn && compareLsn(s.flushedLsn, endLsn) >= 0,
  )
  return names.filter((name) => there.some((s) => s.applicationName === name)).length >= rule.count
}
