import type { FlashbackEvent } from '@floe/domain'
import { expect, test } from 'vitest'
import { groupEvents, groupInWords, justBefore, marksOver, suggestions } from './table-events'

const event = (at: number, more: Partial<FlashbackEvent> = {}): FlashbackEvent => ({
  kind: 'change',
  at,
  table: 1,
  tableName: 'public.orders',
  inserted: 0,
  updated: 0,
  deleted: 0,
  ...more,
})

test('a script that deletes in batches is one event, and its first commit is the one to go before', () => {
  const groups = groupEvents([
    event(20_000, { deleted: 1_000 }),
    event(11_000, { deleted: 2_000 }),
    event(12_000, { deleted: 5, table: 2 }),
    event(60_000, { deleted: 1 }),
  ])
  expect(groups.map((g) => [g.table, g.from, g.to, groupInWords(g)])).toEqual([
    [1, 11_000, 20_000, '3,000 rows were deleted in 2 transactions'],
    [2, 12_000, 12_000, '5 rows were deleted'],
    [1, 60_000, 60_000, '1 row was deleted'],
  ])
})

test('a transaction is named by what it did most of to the rows that were there', () => {
  const words = (more: Partial<FlashbackEvent>) => groupEvents([event(0, more)]).map(groupInWords)[0]
  expect(words({ updated: 7, deleted: 2, inserted: 9 })).toBe('7 rows were updated')
  expect(words({ deleted: 2, inserted: 9 })).toBe('2 rows were deleted')
  expect(words({ inserted: 9 })).toBe('9 rows were inserted')
  expect(words({ kind: 'truncate' })).toBe('the table was truncated')
  expect(words({ kind: 'ddl' })).toBe('the table was altered')
})

test('just before a commit is the microsecond before, at which one of the same millisecond counts', () => {
  const committed = 1_790_000_000_345.612
  // a double does not hold the microsecond exactly
  for (const told of [committed, committed - 0.0001, committed + 0.0001])
    expect(justBefore(told)).toBe(1_790_000_000_345.611)
  expect(justBefore(1_790_000_000_345)).toBe(1_790_000_000_344.999)
})

test('what happened to partitions is told as such of their table', () => {
  const words = (...events: FlashbackEvent[]) => groupEvents(events).map(groupInWords)
  expect(words(event(0, { deleted: 2_000, partitions: 3 }))).toEqual(['2,000 rows were deleted'])
  expect(words(event(0, { kind: 'truncate', partitions: 1 }))).toEqual(['a partition was truncated'])
  expect(words(event(0, { kind: 'drop', partitions: 3 }))).toEqual(['3 partitions were dropped'])
  expect(
    words(event(0, { kind: 'truncate', partitions: 1 }), event(1, { kind: 'truncate', partitions: 2 })),
  ).toEqual(['partitions were truncated in 2 transactions'])
  expect(words(event(0, { kind: 'ddl', partitions: 1 }), event(1, { kind: 'ddl' }))).toEqual([
    'the table was altered 2 times',
  ])
})

test('losses are suggested before other events, the newest first, and none from outside the window', () => {
  const groups = groupEvents([
    event(500, { deleted: 9 }),
    event(2_000, { updated: 3 }),
    event(30_000, { kind: 'truncate' }),
    event(40_000, { kind: 'ddl' }),
    event(50_000, { deleted: 4, table: 2 }),
  ])
  const offered = suggestions(groups, 1, { from: 1_000, to: 60_000 })
  expect(offered.map((g) => g.verb)).toEqual(['truncated', 'updated', 'altered'])
})

test('events too near each other share a mark, which has the looks of the worst of them', () => {
  const groups = groupEvents([
    event(1_000, { kind: 'ddl' }),
    event(1_100, { deleted: 5 }),
    event(9_000, { updated: 5 }),
    event(99_000, { deleted: 5 }),
  ])
  const marks = marksOver(groups, { from: 0, to: 10_000 }, 500)
  expect(marks.map((m) => [m.at, m.loss, m.groups.length])).toEqual([
    [1_000, 'rows', 2],
    [9_000, 'values', 1],
  ])
  // zoomed in, each has its own
  expect(marksOver(groups, { from: 900, to: 1_900 }, 500)).toHaveLength(2)
})
