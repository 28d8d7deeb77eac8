import { expect, test } from 'vitest'
import {
  type Accepted,
  judgeLoss,
  longestGap,
  overlaps,
  overlapWasSaid,
  primaryAt,
  ROW_WAL_BYTES,
  type Row,
  type Statement,
  unsaidSpans,
  withoutPrimary,
} from './judge'

const accepted = (member: string, timeline: string, ...at: number[]): Accepted[] =>
  at.map((t) => ({ member, timeline, sentAt: t, acknowledgedAt: t + 5 }))
const row = (n: number, acknowledgedAt: number, client = 0): Row => ({
  client,
  n,
  sentAt: acknowledgedAt - 1,
  acknowledgedAt,
})
const said = (more: Partial<Statement>): Statement => ({
  at: 0,
  kind: 'proven',
  covers: 'disk',
  lossBytes: null,
  notFenced: [],
  ...more,
})

test('one primary after another is no overlap', () => {
  expect(overlaps([...accepted('a', '01', 0, 100, 200), ...accepted('b', '02', 300, 400)])).toEqual([])
})

test('a commit that was sent before the other one’s first was acknowledged proves nothing', () => {
  const late = { member: 'a', timeline: '01', sentAt: 290, acknowledgedAt: 350 }
  expect(overlaps([...accepted('a', '01', 0), late, ...accepted('b', '02', 300, 400)])).toEqual([])
})

test('a former primary that goes on after the new one began is an overlap', () => {
  const found = overlaps([...accepted('a', '01', 0, 100, 500), ...accepted('b', '02', 300, 400)])
  expect(found).toEqual([{ one: 'a', other: 'b', from: 305, to: 400 }])
})

test('a primary that comes back by a later promotion is another one', () => {
  const back = [...accepted('a', '01', 0), ...accepted('b', '02', 100), ...accepted('a', '03', 200)]
  expect(overlaps(back)).toEqual([])
})

test('two that were promoted at one position give the same timeline and are told apart', () => {
  const twins = [...accepted('a', '02', 0, 100, 200), ...accepted('b', '02', 50, 150)]
  expect(overlaps(twins)).toHaveLength(1)
})

test('an overlap was said only where a failover before its end named one of the two', () => {
  const overlap = { one: 'a', other: 'b', from: 300, to: 400 }
  expect(overlapWasSaid(overlap, [])).toBe(false)
  expect(overlapWasSaid(overlap, [said({ at: 200 })])).toBe(false)
  expect(overlapWasSaid(overlap, [said({ at: 200, notFenced: ['c'] })])).toBe(false)
  expect(overlapWasSaid(overlap, [said({ at: 200, notFenced: ['a'] })])).toBe(true)
  expect(overlapWasSaid(overlap, [said({ at: 500, notFenced: ['a'] })])).toBe(false)
})

test('the primary before a moment is who accepted last, in whatever order it was noted', () => {
  const history = [...accepted('b', '02', 300), ...accepted('a', '01', 100, 200)]
  expect(primaryAt(history, 250)).toBe('a')
  expect(primaryAt(history, 400)).toBe('b')
  expect(primaryAt(history, 50)).toBeNull()
})

test('rows that are lost after a proof are unsaid', () => {
  const loss = judgeLoss([row(1, 10), row(2, 20)], [said({})], 'on', [])
  expect(loss.unsaid).toHaveLength(2)
  expect(loss.why).toContain('proven')
})

test('rows that are lost without any failover are unsaid', () => {
  expect(judgeLoss([row(1, 10)], [], 'on', []).unsaid).toHaveLength(1)
})

test('an unknown loss says that any row may be lost', () => {
  expect(judgeLoss([row(1, 10)], [said({ kind: 'unknown' })], 'on', []).unsaid).toEqual([])
})

test('a bound covers as many rows as can be in so many bytes, and no more', () => {
  const rows = Array.from({ length: 10 }, (_, n) => row(n, n))
  const bound = (lossBytes: number) =>
    judgeLoss(rows, [said({ kind: 'bounded', lossBytes })], 'on', []).unsaid.length
  expect(bound(10 * ROW_WAL_BYTES)).toBe(0)
  expect(bound(9 * ROW_WAL_BYTES)).toBe(10)
})

test('at level off the moments before the end of a primary may be lost, earlier ones not', () => {
  const lost = [row(1, 1_000), row(2, 9_500)]
  expect(judgeLoss(lost, [said({})], 'off', [10_000]).unsaid).toEqual([lost[0]])
  expect(judgeLoss(lost, [said({})], 'on', [10_000]).unsaid).toEqual(lost)
})

test('the gap is the longest of any client, also from the beginning and to the end', () => {
  const rows = [row(1, 10), row(2, 60), row(1, 20, 1), row(2, 90, 1)]
  expect(longestGap(rows, 2, { from: 0, to: 100 })).toBe(70)
  expect(longestGap(rows, 2, { from: 0, to: 500 })).toBe(440)
  expect(longestGap([], 1, { from: 0, to: 500 })).toBe(500)
})

test('a time without a primary is told, and is said where its incident opens in time', () => {
  const spans = withoutPrimary([10, 100, 50_000], { from: 0, to: 50_100 }, 30_000)
  expect(spans).toEqual([{ from: 100, to: 50_000 }])
  expect(unsaidSpans(spans, [], 30_000)).toEqual(spans)
  expect(unsaidSpans(spans, [{ from: 20_000, to: 40_000 }], 30_000)).toEqual([])
  expect(unsaidSpans(spans, [{ from: 45_000, to: 60_000 }], 30_000)).toEqual(spans)
  // one of before does not say anything of this time
  expect(unsaidSpans(spans, [{ from: 0, to: 50 }], 30_000)).toEqual(spans)
})
