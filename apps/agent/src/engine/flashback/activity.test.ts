import { expect, test } from 'vitest'
import { History } from './activity'

const [ROOT, SUB, A, B, C, PLAIN] = [1, 2, 10, 11, 12, 20]
const row = (kind: string, lsn: string, at: number, relation: number, deleted = 0) =>
  ({ kind, lsn, at, relation, inserted: 0, updated: 0, deleted }) as never
const links = [
  { child: A, parent: ROOT },
  { child: SUB, parent: ROOT },
  { child: B, parent: SUB },
  { child: C, parent: SUB },
]
const historyOf = (rows: never[]) => {
  const history = new History()
  history.partitions.see(links, 0)
  history.take(rows)
  return history
}
const told = (history: History, table: number | null) =>
  history.eventsOf(table, 0).map(({ kind, table: of, deleted, partitions }) => ({
    kind,
    of,
    deleted,
    ...(partitions === undefined ? {} : { partitions }),
  }))

test('what a transaction did to partitions is one event of their table, and counts together', () => {
  const history = historyOf([
    row('change', '0/1', 1, A, 600),
    row('change', '0/1', 1, B, 500),
    row('change', '0/1', 1, PLAIN, 900),
    row('change', '0/2', 2, A, 900),
    row('change', '0/3', 3, B, 2_000),
    row('change', '0/4', 4, PLAIN, 1_000),
  ])
  const ofRoot = [
    { kind: 'change', of: ROOT, deleted: 1_100, partitions: 2 },
    { kind: 'change', of: ROOT, deleted: 2_000, partitions: 1 },
  ]
  expect(told(history, ROOT)).toEqual(ofRoot)
  expect(told(history, null)).toEqual([...ofRoot, { kind: 'change', of: PLAIN, deleted: 1_000 }])
  // each has its own only
  expect(told(history, SUB)).toEqual([{ kind: 'change', of: SUB, deleted: 2_000, partitions: 1 }])
  expect(told(history, B)).toEqual([{ kind: 'change', of: B, deleted: 2_000 }])
  expect(told(history, A)).toEqual([])
})

test('truncated and dropped partitions are told of their table, also when they are no more', () => {
  const history = historyOf([
    row('truncate', '0/1', 1, A),
    row('truncate', '0/1', 1, B),
    row('ddl', '0/2', 2, ROOT),
    row('ddl', '0/2', 2, C),
    row('drop', '0/3', 3, C),
  ])
  history.partitions.see(
    links.filter((l) => l.child !== C),
    5,
  )
  history.take([row('truncate', '0/4', 4, C), row('truncate', '0/5', 6, C)])
  expect(told(history, ROOT)).toEqual([
    { kind: 'truncate', of: ROOT, deleted: 0, partitions: 2 },
    { kind: 'ddl', of: ROOT, deleted: 0 },
    { kind: 'drop', of: ROOT, deleted: 0, partitions: 1 },
    { kind: 'truncate', of: ROOT, deleted: 0, partitions: 1 },
  ])
  // what became of it once it was no partition any more is its own
  expect(told(history, null).at(-1)).toEqual({ kind: 'truncate', of: C, deleted: 0 })
})

test('a partitioned table was changed last when any of its partitions was', () => {
  const history = historyOf([
    row('last', '0/1', 7, A),
    row('last', '0/1', 9, B),
    row('last', '0/1', 3, PLAIN),
  ])
  expect(Object.fromEntries(history.lastChanges())).toEqual({
    [ROOT]: 9,
    [SUB]: 9,
    [A]: 7,
    [B]: 9,
    [PLAIN]: 3,
  })
})

test('partitions of which the engine says that they contain each other end nothing', () => {
  const history = new History()
  history.partitions.see(
    [
      { child: A, parent: B },
      { child: B, parent: A },
    ],
    0,
  )
  history.take([row('change', '0/1', 1, A, 5_000)])
  expect(told(history, null)).toHaveLength(1)
})
