import { describe, expect, test } from 'vitest'
import {
  type ChartDefinition,
  derive,
  linesShown,
  metricsOf,
  overviewCharts,
  overviewKeys,
  overviewMetrics,
} from './chart-definitions'
import { bucketMsFor, joins, MAX_POINTS, Timeline, type TimelinePoint, type TimelineRow } from './timeline'

const start = 1_795_000_000_000
const point = (second: number, tps: number | null, intervalMs = 1_000): TimelinePoint => ({
  at: start + second * 1_000,
  intervalMs,
  values: { tps },
})

describe('gaps', () => {
  test('samples a second apart are one line', () => {
    const t = new Timeline(1_000, ['tps'])
    for (let s = 0; s < 5; s++) t.add(point(s, s))
    expect(t.rows().map((r) => r.tps)).toEqual([0, 1, 2, 3, 4])
  })

  test('a tick that was missed but covered by the next sample is no gap', () => {
    const t = new Timeline(1_000, ['tps'])
    t.add(point(0, 10))
    t.add(point(3, 20, 3_000))
    expect(t.rows().map((r) => r.tps)).toEqual([10, 20])
  })

  test('time that nobody measured breaks the line, and is not a zero', () => {
    const t = new Timeline(1_000, ['tps'])
    t.add(point(0, 10))
    t.add(point(5, 20))
    const rows = t.rows()
    expect(rows.map((r) => r.tps)).toEqual([10, null, 20])
    expect(rows[1]?.at).toBeGreaterThan(rows[0]?.at ?? 0)
    expect(rows[1]?.at).toBeLessThan(rows[2]?.at ?? 0)
  })

  test('a hole of more than 10 s is shown as one even where counters bridge it', () => {
    const t = new Timeline(1_000, ['tps'])
    t.add(point(0, 10))
    t.add(point(30, 20, 30_000))
    expect(t.rows().map((r) => r.tps)).toEqual([10, null, 20])
  })

  test('points rolled up to a minute join when they follow on each other and cover at least half', () => {
    expect(joins({ at: 0 }, { at: 60_000, intervalMs: 58_000 }, 60_000)).toBe(true)
    expect(joins({ at: 0 }, { at: 60_000, intervalMs: 20_000 }, 60_000)).toBe(false)
    expect(joins({ at: 0 }, { at: 300_000, intervalMs: 60_000 }, 60_000)).toBe(false)
  })
})

describe('joining history and live', () => {
  test('a sample that is already there is not added twice', () => {
    const t = new Timeline(1_000, ['tps'])
    for (const s of [0, 1, 2, 2, 1, 3]) t.add(point(s, s))
    expect(t.rows().map((r) => r.tps)).toEqual([0, 1, 2, 3])
  })

  test('what is older than the window is forgotten, save one row so that lines reach its edge', () => {
    const t = new Timeline(1_000, ['tps'])
    for (let s = 0; s < 20; s++) t.add(point(s, s))
    t.dropBefore(start + 10_500)
    expect(t.rows()[0]?.tps).toBe(10)
  })
})

describe('buckets', () => {
  test('any range has at most as many points as a chart may draw', () => {
    for (const hours of [0.05, 0.25, 1, 6, 24, 24 * 30, 24 * 90]) {
      const span = hours * 3_600_000
      expect(span / bucketMsFor(span)).toBeLessThanOrEqual(MAX_POINTS)
    }
    expect(bucketMsFor(300_000)).toBe(1_000)
  })

  test('an average weighs each sample by the time it covers', () => {
    const t = new Timeline(10_000, ['tps'])
    const base = Math.ceil(start / 10_000) * 10_000
    t.add({ at: base + 1_000, intervalMs: 1_000, values: { tps: 100 } })
    t.add({ at: base + 4_000, intervalMs: 3_000, values: { tps: 0 } })
    expect(t.rows().map((r) => r.tps)).toEqual([25])
  })

  test('a value that nobody knew in a bucket stays unknown', () => {
    const t = new Timeline(10_000, ['tps', 'wal_bytes'])
    t.add(point(1, null))
    t.add(point(2, 5))
    expect(t.rows().at(-1)).toMatchObject({ wal_bytes: null })
  })

  test('old buckets keep their values while new samples arrive', () => {
    const t = new Timeline(5_000, ['tps'])
    const before: unknown[] = []
    for (let s = 0; s < 60; s++) {
      t.add(point(s, s * 7))
      if (s === 40) before.push(...t.rows().slice(0, 5))
    }
    expect(t.rows().slice(0, 5)).toEqual(before)
  })
})

describe('charts', () => {
  test('every series of every chart has its rows filled', () => {
    for (const chart of overviewCharts)
      for (const series of chart.series) expect(overviewKeys).toContain(series.key)
    for (const chart of overviewCharts)
      for (const metric of metricsOf(chart)) expect(overviewMetrics).toContain(metric)
  })

  test('titles are unique, so that each chart has a name of its own', () => {
    const titles = overviewCharts.map((c) => c.title)
    expect(new Set(titles).size).toBe(titles.length)
  })

  test('WAL is split only where the share of full-page images is known', () => {
    expect(derive({ wal_bytes: 100, wal_fpi_bytes: 30 })).toEqual({
      wal_rest_bytes: 70,
      wal_unsplit_bytes: null,
    })
    expect(derive({ wal_bytes: 100, wal_fpi_bytes: null })).toEqual({
      wal_rest_bytes: null,
      wal_unsplit_bytes: 100,
    })
    expect(derive({})).toEqual({ wal_rest_bytes: null, wal_unsplit_bytes: null })
  })

  test('a line is left out where it has nothing to show', () => {
    const wal = overviewCharts.find((c) => c.id === 'wal') as ChartDefinition
    const keys = (...rows: Record<string, number | null>[]) =>
      linesShown(wal, rows as TimelineRow[]).map((line) => line.key)
    const split = ['wal_fpi_bytes', 'wal_rest_bytes']
    expect(keys({ wal_fpi_bytes: 0, wal_fpi_omitted_bytes: 0 })).toEqual(split)
    expect(keys({ wal_fpi_bytes: null }, { wal_fpi_bytes: 5 })).toEqual(split)
    expect(keys({ wal_fpi_bytes: 0, wal_fpi_omitted_bytes: 8 })).toEqual([...split, 'wal_fpi_omitted_bytes'])
    expect(keys({ wal_fpi_bytes: null })).toEqual(['wal_unsplit_bytes'])
    expect(keys()).toEqual(['wal_unsplit_bytes'])
  })

  test('the CSV of a chart holds what is drawn and what goes with it', () => {
    const wal = overviewCharts.find((c) => c.id === 'wal') as ChartDefinition
    expect(metricsOf(wal).sort()).toEqual(
      ['wal_bytes', 'wal_fpi', 'wal_fpi_bytes', 'wal_fpi_omitted_bytes', 'wal_records'].sort(),
    )
  })

  test('what is drawn at once stays within the budget of points', () => {
    const series = overviewCharts.reduce((n, c) => n + c.series.length, 0)
    // the default range, all charts in view
    expect(series * 300).toBeLessThanOrEqual(12_000)
  })
})
