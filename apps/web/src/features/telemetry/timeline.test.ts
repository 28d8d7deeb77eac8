import { metrics } from '@floe/telemetry'
import { describe, expect, test } from 'vitest'
import {
  type ChartDefinition,
  chartsShown,
  linesShown,
  metricsOf,
  overviewCharts,
  overviewMetrics,
  overviewShape,
} from './chart-definitions'
import {
  type Derive,
  type LivePoint,
  maximumKey,
  type StoredPoint,
  Timeline,
  type TimelineRow,
} from './timeline'

const start = 1_795_000_000_000
const sample = (second: number, tps: number | null, intervalMs = 1_000): LivePoint => ({
  at: start + second * 1_000,
  intervalMs,
  values: { tps },
})
const stored = (second: number, tps: number | null, more: Partial<StoredPoint> = {}): StoredPoint => ({
  at: start + second * 1_000,
  intervalMs: 1_000,
  gapBefore: false,
  average: [tps],
  maximum: null,
  ...more,
})
const tps = { metrics: ['tps'] } as const
const values = (t: Timeline) => t.rows().map((r) => r.tps)

describe('gaps', () => {
  test('samples a second apart are one line', () => {
    const t = new Timeline(1, tps)
    for (let s = 0; s < 5; s++) t.addLive(sample(s, s))
    expect(values(t)).toEqual([0, 1, 2, 3, 4])
  })

  test('a tick that was missed but covered by the next sample is no gap', () => {
    const t = new Timeline(1, tps)
    t.addLive(sample(0, 10))
    t.addLive(sample(3, 20, 3_000))
    expect(values(t)).toEqual([10, 20])
  })

  test.each([1, 2])(
    'time that nobody measured breaks the line at %i s a point, and is not a zero',
    (step) => {
      const t = new Timeline(step, tps)
      t.addLive(sample(0, 10))
      t.addLive(sample(5, 20))
      const rows = t.rows()
      expect(rows.map((r) => r.tps)).toEqual([10, null, 20])
      expect(rows[1]?.at).toBeGreaterThan(rows[0]?.at ?? 0)
      expect(rows[1]?.at).toBeLessThan(rows[2]?.at ?? 0)
    },
  )

  test('of stored points the server says where a gap is', () => {
    const t = new Timeline(60, tps)
    t.addStored(stored(0, 1))
    t.addStored(stored(600, 2))
    t.addStored(stored(660, 3, { gapBefore: true }))
    expect(values(t)).toEqual([1, 2, null, 3])
  })
})

describe('joining history and live', () => {
  test('a sample that is already there is not added twice', () => {
    const t = new Timeline(1, tps)
    for (const s of [0, 1, 2]) t.addStored(stored(s, s))
    for (const s of [2, 1, 3]) t.addLive(sample(s, s))
    expect(values(t)).toEqual([0, 1, 2, 3])
  })

  test('a step that the history holds the begin of goes on with samples', () => {
    const t = new Timeline(10, tps)
    const base = Math.ceil(start / 10_000) * 10 - start / 1_000
    t.addStored(stored(base, 5, { intervalMs: 10_000 }))
    t.addStored(stored(base + 4, 100, { intervalMs: 4_000 }))
    t.addLive(sample(base + 5, 0))
    expect(values(t)).toEqual([5, 80])
    t.addLive(sample(base + 10.2, 7, 5_200))
    expect(values(t)).toEqual([5, 80, 7])
  })

  test('what is older than the window is forgotten, save one row so that lines reach its edge', () => {
    const t = new Timeline(1, tps)
    for (let s = 0; s < 20; s++) t.addLive(sample(s, s))
    t.dropBefore(start + 10_500)
    expect(t.rows()[0]?.tps).toBe(10)
  })
})

describe('steps', () => {
  test('a value that nobody knew in a step stays unknown', () => {
    const t = new Timeline(10, { metrics: ['tps', 'wal_bytes'] })
    t.addLive(sample(1, null))
    t.addLive(sample(2, 5))
    expect(t.rows().at(-1)).toMatchObject({ tps: 5, wal_bytes: null })
  })

  test('old rows keep their values while new samples arrive', () => {
    const t = new Timeline(5, tps)
    const before: unknown[] = []
    for (let s = 0; s < 60; s++) {
      t.addLive(sample(s, s * 7))
      if (s === 40) before.push(...t.rows().slice(0, 5))
    }
    expect(t.rows().slice(0, 5)).toEqual(before)
  })

  test('the largest value of a step is that of stored points and samples, and is none of a single sample', () => {
    const shape = { metrics: ['wal_bytes', 'tps'], maximumOf: ['tps'] } as const
    const t = new Timeline(10, shape)
    const base = Math.ceil(start / 10_000) * 10 - start / 1_000
    t.addStored({ ...stored(base + 4, null), average: [1, 50], maximum: [90] })
    t.addLive(sample(base + 5, 70))
    expect(t.rows()[0]?.[maximumKey('tps')]).toBe(90)
    t.addLive(sample(base + 6, 95))
    expect(t.rows()[0]?.[maximumKey('tps')]).toBe(95)
    const single = new Timeline(1, shape)
    single.addLive(sample(0, 5))
    expect(single.rows()[0]?.[maximumKey('tps')]).toBeNull()
  })
})

describe('charts', () => {
  test('every series of every chart has its rows filled', () => {
    const t = new Timeline(1, overviewShape)
    t.addLive(sample(0, 1))
    for (const chart of overviewCharts)
      for (const line of chart.series) expect(t.rows()[0]).toHaveProperty([line.key])
    for (const chart of overviewCharts)
      for (const metric of metricsOf(chart)) expect(overviewMetrics).toContain(metric)
  })

  test('titles are unique, so that each chart has a name of its own', () => {
    const titles = overviewCharts.map((c) => c.title)
    expect(new Set(titles).size).toBe(titles.length)
  })

  const derive = overviewShape.derive as Derive
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

  const everything = Object.fromEntries(overviewMetrics.map((name) => [name, 1]))
  const shownWith = (row: Record<string, number | null>) => chartsShown([row as TimelineRow]).map((c) => c.id)

  test('every limit that a sample can tell is drawn', () => {
    const rows = [everything as TimelineRow]
    const drawn = chartsShown(rows).flatMap((chart) => linesShown(chart, rows).map((line) => line.key))
    const limits = metrics.map((m) => m.name).filter((name) => name.endsWith('_limit'))
    expect(limits).toHaveLength(11)
    expect(drawn).toEqual(expect.arrayContaining(limits))
  })

  test('a chart of a device, or of waits, is there where something is known of it', () => {
    const some = { tps: 1, data_device_writes: 5, data_device_write_bytes: 40_960 }
    expect(shownWith(some)).toContain('device')
    for (const [chart, metric] of [
      ['device-bytes', 'data_device_write_bytes_limit'],
      ['wal-device', 'wal_device_writes'],
      ['wal-device-bytes', 'wal_device_read_bytes_limit'],
      ['waits', 'memory_stall'],
    ] as const) {
      expect(shownWith(some)).not.toContain(chart)
      expect(shownWith({ ...some, [metric]: null })).not.toContain(chart)
      expect(shownWith({ ...some, [metric]: 0 })).toContain(chart)
    }
  })

  test('what is drawn at once stays within the budget of points', () => {
    // of an instance with limits of requests, and WAL beside the data
    const usual = Object.entries(everything).filter(([name]) => !/^wal_device|_bytes_limit$/.test(name))
    const rows = [Object.fromEntries(usual) as TimelineRow]
    const series = chartsShown(rows).reduce((n, c) => n + linesShown(c, rows).length, 0)
    // the default range, all charts in view
    expect(series * 300).toBeLessThanOrEqual(12_000)
  })
})
