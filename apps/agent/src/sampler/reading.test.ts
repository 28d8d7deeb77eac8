import { describe, expect, test } from 'vitest'
import { decodeReading, encodeReading, type Reading, readingFromRow, valuesBetween } from './reading'

const reading = (over: Partial<Reading> = {}): Reading => ({
  at: 1_000_000,
  monotonic: 5_000,
  uncertainty: 2,
  postmasterStart: 900_000,
  ownTransactions: 1,
  ownTime: 3,
  counters: {
    xact_commit: 100,
    xact_rollback: 10,
    active_time: 50,
    blks_hit: 80,
    blks_read: 20,
    wal_bytes: 1_000,
  },
  resets: { databases_reset: 1, wal_reset: 1 },
  gauges: {},
  ...over,
})
const later = (ms: number, counters: Reading['counters'], over: Partial<Reading> = {}) =>
  reading({ at: 1_000_000 + ms, monotonic: 5_000 + ms, counters, ...over })

describe('rates', () => {
  test('are per second of the measured time, without the agent’s own transaction', () => {
    const after = later(2_000, { xact_commit: 301, xact_rollback: 30, active_time: 473, wal_bytes: 5_000 })
    const sample = valuesBetween(reading(), after)
    expect(sample?.intervalMs).toBe(2_000)
    expect(sample?.values).toMatchObject({ tps: 110, xact_commit: 100, xact_rollback: 10, wal_bytes: 2_000 })
    expect(sample?.values.xact_active_time).toBeCloseTo((423 - 3) / 220)
  })

  test('are absent where a counter went backwards or its view was reset, never negative', () => {
    const backwards = valuesBetween(
      reading(),
      later(1_000, { xact_commit: 5, xact_rollback: 12, wal_bytes: 2_000 }),
    )
    expect(backwards?.values).not.toHaveProperty('tps')
    expect(backwards?.values).not.toHaveProperty('xact_commit')
    expect(backwards?.values).toMatchObject({ xact_rollback: 2, wal_bytes: 1_000 })
    const reset = valuesBetween(
      reading(),
      later(1_000, { xact_commit: 900, wal_bytes: 9_000 }, { resets: { databases_reset: 1, wal_reset: 2 } }),
    )
    expect(reset?.values).not.toHaveProperty('wal_bytes')
    expect(reset?.values).toHaveProperty('xact_commit')
  })

  test('of counters this engine does not have are absent, not 0', () => {
    const sample = valuesBetween(reading({ counters: {} }), later(1_000, {}))
    expect(sample?.values).toEqual({})
  })

  test('are not made between two lives of the postmaster', () => {
    expect(valuesBetween(reading(), later(1_000, {}, { postmasterStart: 1_000_500 }))).toBeNull()
  })

  test('use the monotonic clock when the wall clock was set in between', () => {
    const after = later(1_000, { wal_bytes: 2_000 }, { at: 1_000_000 + 3_600_000 })
    expect(valuesBetween(reading(), after)).toMatchObject({ intervalMs: 1_000, values: { wal_bytes: 1_000 } })
    const back = later(1_000, { wal_bytes: 2_000 }, { at: 1_000_000 - 3_600_000 })
    expect(valuesBetween(reading(), back)?.intervalMs).toBe(1_000)
  })

  test('the hit ratio is unknown when nothing was read', () => {
    const same = { blks_hit: 80, blks_read: 20 }
    expect(valuesBetween(reading(), later(1_000, same))?.values).not.toHaveProperty('cache_hit_ratio')
    const moved = { blks_hit: 110, blks_read: 30 }
    expect(valuesBetween(reading(), later(1_000, moved))?.values.cache_hit_ratio).toBe(0.75)
  })
})

test('a row becomes counters and gauges, and null stays unknown', () => {
  const row = {
    at: 1,
    postmaster_start: 2,
    wal_bytes: 7,
    wal_fpi_bytes: null,
    connections_total: 3,
    own_time: 0.5,
  }
  const r = readingFromRow(row, 10, 1)
  expect(r.counters).toEqual({ wal_bytes: 7 })
  expect(r.gauges).toEqual({ connections_total: 3 })
})

test('a stored reading comes back as it was, without its gauges', () => {
  const r = reading({ gauges: { connections_total: 3 } })
  const stored = decodeReading(encodeReading(r))
  expect(stored).toMatchObject({ ...r, resets: r.resets, gauges: {} })
})

test('a reading stored by an agent with other counters is not used', () => {
  expect(decodeReading(new Float64Array(3))).toBeNull()
  // as many numbers, of which one has become another counter
  const stored = encodeReading(reading({}))
  expect(decodeReading(stored.with(0, (stored[0] as number) + 1))).toBeNull()
})
