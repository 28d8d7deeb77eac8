import { z } from 'zod'
import { compareLsn, Lsn } from '../lsn'

/** Where a timeline ended in the history of a later one. */
export const TimelineEnd = z.object({ timeline: z.number().int(), end: Lsn })
export type TimelineEnd = z.infer<typeof TimelineEnd>

/** A timeline with those it came from, the oldest first; null where they are not known. */
export const Timeline = z.object({
  timeline: z.number().int(),
  ancestors: z.array(TimelineEnd).max(10_000).nullable(),
})
export type Timeline = z.infer<typeof Timeline>

/** How far WAL goes: everything on a timeline and those it came from, up to an LSN. */
export const WalPosition = Timeline.extend({ lsn: Lsn })
export type WalPosition = z.infer<typeof WalPosition>

/** A stretch of a history; `end` is null where it goes on. */
type Branch = { timeline: number; begin: string; end: string | null }

const START = '0/0'

/** The stretches that WAL goes through, the oldest first; null where the history is unknown or contradicts itself. */
function branchesOf({ timeline, ancestors }: Timeline, lsn: string | null): Branch[] | null {
  if (ancestors === null) return null
  const branches: Branch[] = []
  let begin = START
  let before = 0
  for (const [i, ancestor] of ancestors.entries()) {
    if (ancestor.timeline <= before || (i > 0 && compareLsn(ancestor.end, begin) < 0)) return null
    before = ancestor.timeline
    // a timeline that was left where it began holds nothing of its own, and neither does one that lies ahead
    if (lsn !== null && compareLsn(lsn, ancestor.end) <= 0)
      return [...branches, { timeline: ancestor.timeline, begin, end: lsn }]
    branches.push({ timeline: ancestor.timeline, begin, end: ancestor.end })
    begin = ancestor.end
  }
  if (timeline <= before) return null
  return [...branches, { timeline, begin, end: lsn }]
}

/** What a history file (`0000000A.history`) says of the timelines before; null where it cannot be read as one. */
export function parseTimelineHistory(text: string): TimelineEnd[] | null {
  const ancestors: TimelineEnd[] = []
  for (const line of text.split('\n')) {
    if (/^\s*(#|$)/.test(line)) continue
    const [, timeline, end] = /^\s*(\d{1,10})\s+([0-9A-Fa-f]{1,8}\/[0-9A-Fa-f]{1,8})(\s|$)/.exec(line) ?? []
    if (!timeline || !end || Number(timeline) <= (ancestors.at(-1)?.timeline ?? 0)) return null
    ancestors.push({ timeline: Number(timeline), end: end as Lsn })
  }
  return ancestors
}

/** The name of a timeline's history file. */
export const historyFileName = (timeline: number): string =>
  `${timeline.toString(16).toUpperCase().padStart(8, '0')}.history`

const least = (a: string | null, b: string | null): string | null => {
  if (a === null || b === null) return a ?? b
  return compareLsn(a, b) <= 0 ? a : b
}

/** Up to where two histories are one: timelines are the same that have the same number and come from the same place; `last`: the last stretch that both have, -1 where they share none. */
function shared(a: readonly Branch[], b: readonly Branch[]): { last: number; until: string | null } {
  let last = -1
  let until: string | null = START
  for (let i = 0; i < a.length && i < b.length; i++) {
    const [x, y] = [a[i], b[i]] as [Branch, Branch]
    if (x.timeline !== y.timeline) break
    last = i
    until = least(x.end, y.end)
    if (x.end === null || y.end === null || compareLsn(x.end, y.end) !== 0) break
  }
  return { last, until }
}

/** How WAL relates to other WAL. `until`: up to there both are the same. */
export type Relation = {
  kind: 'same' | 'ahead' | 'behind' | 'diverged'
  until: Lsn
}

/** How the first relates to the second; null where that is unknown. */
export function relate(a: WalPosition | null, b: WalPosition | null): Relation | null {
  const x = a && branchesOf(a, a.lsn)
  const y = b && branchesOf(b, b.lsn)
  if (!a || !b || !x || !y) return null
  const { last, until } = shared(x, y)
  if (last < 0) return { kind: 'diverged', until: START as Lsn }
  const endsHere = (branches: readonly Branch[], lsn: string) =>
    last === branches.length - 1 && compareLsn(lsn, until as string) === 0
  const aEnds = endsHere(x, a.lsn)
  const bEnds = endsHere(y, b.lsn)
  const kind = aEnds && bEnds ? 'same' : aEnds ? 'behind' : bEnds ? 'ahead' : 'diverged'
  return { kind, until: until as Lsn }
}

/** Whether WAL goes at least as far as other WAL, on the same history; null where that is unknown. */
export function holds(holder: WalPosition | null, other: WalPosition | null): boolean | null {
  const relation = relate(holder, other)
  return relation && (relation.kind === 'same' || relation.kind === 'ahead')
}

/** Where a timeline began, on the one it came from. */
export function beginningOf({ timeline, ancestors }: Timeline): WalPosition | null {
  const parent = ancestors?.at(-1)
  if (ancestors === null) return null
  return parent
    ? { timeline: parent.timeline, lsn: parent.end, ancestors: ancestors.slice(0, -1) }
    : { timeline, lsn: START as Lsn, ancestors }
}

/**
 * How far WAL goes along a timeline and those it came from, and whether it has left it for another one. Null where that is
 * unknown.
 */
export function along(
  position: WalPosition | null,
  timeline: Timeline | null,
): { reach: WalPosition; left: boolean } | null {
  const own = position && branchesOf(position, position.lsn)
  const wanted = timeline && branchesOf(timeline, null)
  if (!position || !own || !timeline || !wanted) return null
  const { last, until } = shared(own, wanted)
  const stays = last === own.length - 1 && compareLsn(position.lsn, until as string) === 0
  return { reach: { ...timeline, lsn: until as Lsn }, left: !stays }
}
