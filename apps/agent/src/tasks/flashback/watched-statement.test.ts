import { expect, test } from 'vitest'
import { workOf } from './watched-statement'

const MB = 1024 ** 2
/** What the engine tells: its counters begin anew with each pass, and stand still while another kind of pass goes on. */
const seen = (phase: string, wal: [number, number], blocks: [number, number], partitions = [0, 1]) => ({
  phase,
  wal_bytes_done: wal[0] * MB,
  wal_bytes_total: wal[1] * MB,
  blocks_done: blocks[0] * 128,
  blocks_total: blocks[1] * 128,
  rows: null,
  partitions_done: partitions[0] as number,
  partitions_total: partitions[1] as number,
})
const course = [
  seen('finding the position in WAL', [50, 100], [0, 0]),
  seen('finding the position in WAL', [100, 100], [0, 0]),
  seen('reading the catalog', [100, 100], [1, 2]),
  seen('replaying WAL', [20, 90], [2, 2]),
  seen('replaying WAL', [90, 90], [2, 2]),
  seen('reading the table', [90, 90], [0, 900]),
  seen('reading the table', [90, 90], [900, 900]),
  seen('replaying WAL', [0, 90], [900, 900]),
  seen('replaying WAL', [90, 90], [900, 900]),
  seen('reading rebuilt pages', [90, 90], [900, 900]),
]

test('how far a flashback is never goes back, is not all before it is over, and is unknown before the table is read', () => {
  const work = workOf()
  const told = course.map((row) => work(row))
  const shares = told.map(({ share }) => share)
  expect(shares.slice(0, 5)).toEqual([null, null, null, null, null])
  const known = shares.slice(5) as number[]
  expect(known).toEqual([...known].sort((a, b) => a - b))
  expect(known[0]).toBe(0)
  expect(known[1]).toBeCloseTo(0.9, 5)
  expect(Math.max(...known)).toBe(0.99)
  const done = told.map((w) => w.done / MB)
  expect(done).toEqual([...done].sort((a, b) => a - b))
  // 100 to find the moment, 92 of the catalog, 990 of the table
  expect(done.at(-1)).toBe(1_182)
  expect(new Set(told.slice(5).map((w) => w.total))).toEqual(new Set([(192 + 1_000) * MB]))
})

test('of partitions those that are done are counted', () => {
  const work = workOf()
  const shares = [
    seen('reading the table', [0, 0], [9, 10], [0, 4]),
    seen('reading the table', [0, 0], [1, 10], [1, 4]),
    seen('replaying WAL', [1, 10], [10, 10], [3, 4]),
    seen('replaying WAL', [1, 10], [10, 10], [4, 4]),
  ].map((row) => work(row).share)
  expect(shares).toEqual([0, 0.25, 0.75, 0.99])
})
