import { cleanup, fireEvent, render, screen, within } from '@testing-library/react'
import { describe, expect, test } from 'vitest'
import { TooltipProvider } from '../tooltip'
import { formatTick, formatTimeTick, formatValue, timeTicks, valueTicks } from './axis'
import { bandsAt, visibleBands } from './checkpoint-band'
import { dotKey, drawnExtent, drawnRows, maximumSpan, valuesAbove, withMaximum } from './drawn'
import { standaloneSvg } from './export-png'
import { type ChartRow, extent, lastValue, nearestRow } from './series'
import { sparklinePath } from './sparkline'
import { TimeSeriesChart } from './time-series-chart'

const start = Date.UTC(2026, 10, 21, 12, 0, 0)
const rows: ChartRow[] = [
  { at: start, commit: 100, rollback: 1 },
  { at: start + 1_000, commit: 120, rollback: 2 },
  { at: start + 1_001, commit: null, rollback: null },
  { at: start + 60_000, commit: 90, rollback: null },
]

describe('values', () => {
  test('what is unknown is a dash, never 0', () => {
    for (const unit of ['1/s', 'B/s', 'B', 'ms', 's', '1', 'ratio', 'cores'] as const) {
      expect(formatValue(null, unit)).toBe('–')
      expect(formatValue(undefined, unit)).toBe('–')
      expect(formatValue(Number.NaN, unit)).toBe('–')
    }
  })

  test('every value carries its unit', () => {
    expect(formatValue(1234.4, '1/s')).toBe('1,234 /s')
    expect(formatValue(4 * 1024 * 1024, 'B/s')).toBe('4 MB/s')
    expect(formatValue(0.9934, 'ratio')).toBe('99.34 %')
    expect(formatValue(0.5, 'ratio')).toBe('50.0 %')
    expect(formatValue(0.352, 'ms')).toBe('0.35 ms')
    expect(formatValue(12_000, 'ms')).toBe('12 s')
    expect(formatValue(1, 'cores')).toBe('1 core')
    expect(formatValue(3, '1')).toBe('3')
  })

  test('ticks of bytes are powers of two, those of counts are whole', () => {
    expect(valueTicks(0, 10 * 1024 ** 2, 'B/s')).toEqual([0, 4, 8, 12].map((mb) => mb * 1024 ** 2))
    expect(valueTicks(0, 3, '1')).toEqual([0, 1, 2, 3])
    expect(valueTicks(0, 987, '1/s')).toEqual([0, 250, 500, 750, 1000])
    expect(valueTicks(0, 0, '1/s').length).toBeGreaterThan(1)
  })

  test('a ratio ends at 100 % and begins below the lowest value', () => {
    const ticks = valueTicks(0.97, 1, 'ratio')
    expect(ticks.at(-1)).toBe(1)
    expect(ticks[0]).toBeLessThanOrEqual(0.97)
    expect(formatTick(0.975, 'ratio')).toBe('97.5 %')
  })

  test('ticks of time lie on round local times and are not too many', () => {
    const ticks = timeTicks(start, start + 5 * 60_000, 6, 0)
    expect(ticks.map((t) => (t - start) / 60_000)).toEqual([0, 1, 2, 3, 4, 5])
    for (const span of [10_000, 3_600_000, 86_400_000, 30 * 86_400_000])
      expect(timeTicks(start, start + span, 6, 0).length).toBeLessThanOrEqual(7)
    expect(formatTimeTick(start, 300_000)).toMatch(/^\d\d:\d\d:\d\d$/)
    expect(formatTimeTick(start, 7 * 86_400_000)).toMatch(/^\d\d-\d\d$/)
  })
})

describe('rows', () => {
  test('the nearest row is found on both sides', () => {
    expect(nearestRow([], 0)).toBe(-1)
    expect(nearestRow(rows, start - 5_000)).toBe(0)
    expect(nearestRow(rows, start + 800)).toBe(1)
    expect(nearestRow(rows, start + 59_000)).toBe(3)
    expect(nearestRow(rows, start + 600_000)).toBe(3)
  })

  test('the last value skips what is unknown', () => {
    expect(lastValue(rows, 'rollback')).toEqual({ at: start + 1_000, value: 2 })
    expect(lastValue(rows, 'absent')).toBeNull()
  })

  test('stacked series are measured by their sum, and only within the window', () => {
    expect(extent(rows, ['commit', 'rollback'], true, start, start + 2_000)).toEqual({ min: 101, max: 122 })
    expect(extent(rows, ['commit', 'rollback'], false, start, start + 2_000)).toEqual({ min: 1, max: 120 })
    expect(extent(rows, ['commit'], false, start + 2_000, start + 3_000)).toBeNull()
  })

  test('a null breaks the sparkline', () => {
    const path = sparklinePath(
      [
        { at: 0, value: 1 },
        { at: 1, value: 2 },
        { at: 2, value: null },
        { at: 3, value: 1 },
      ],
      100,
      20,
      0,
      3,
    )
    expect(path.match(/M/g)).toHaveLength(2)
  })
})

describe('checkpoint bands', () => {
  const band = { key: 'a', phase: 'sync' as const, from: 10_000, to: 10_005, label: 'sync' }
  test('a phase shorter than a pixel stays visible', () => {
    const [shown] = visibleBands([band], 0, 300_000, 600)
    expect((shown?.to ?? 0) - (shown?.from ?? 0)).toBeGreaterThanOrEqual(500)
  })
  test('many short phases close together do not look like one', () => {
    const many = Array.from({ length: 100 }, (_, i) => ({
      ...band,
      key: String(i),
      from: i * 1_000,
      to: i * 1_000 + 1,
    }))
    const shown = visibleBands(many, 0, 86_400_000, 600)
    expect(shown).toHaveLength(100)
    expect(shown.slice(0, -1).every((b) => b.to - b.from <= 250)).toBe(true)
  })
  test('a stall leaves the phases of checkpoints as wide as they are', () => {
    const stall = { ...band, key: 'b', phase: 'stall' as const, from: 10_001, to: 12_000 }
    const shown = visibleBands([band, stall], 0, 300_000, 600)
    expect(shown.map((b) => b.phase)).toEqual(['sync', 'stall'])
    expect((shown[0]?.to ?? 0) - (shown[0]?.from ?? 0)).toBeGreaterThanOrEqual(500)
  })
  test('bands outside the window are left out, and those across its edge are cut', () => {
    expect(visibleBands([band], 20_000, 30_000, 600)).toEqual([])
    expect(visibleBands([{ ...band, from: 5_000, to: 15_000 }], 10_000, 30_000, 600)[0]).toMatchObject({
      from: 10_000,
      to: 15_000,
    })
    expect(bandsAt([band], 10_100, 200)).toHaveLength(1)
    expect(bandsAt([band], 11_000, 200)).toHaveLength(0)
  })
})

describe('TimeSeriesChart', () => {
  const series = [
    { key: 'commit', label: 'Commits', color: 1 as const, source: 'pg_stat_database.xact_commit' },
    { key: 'rollback', label: 'Rollbacks', color: 2 as const },
  ]
  const show = (more: Partial<Parameters<typeof TimeSeriesChart>[0]> = {}) =>
    render(
      <TooltipProvider>
        <TimeSeriesChart
          title="TPS"
          unit="1/s"
          series={series}
          rows={rows}
          from={start}
          to={start + 60_000}
          {...more}
        />
      </TooltipProvider>,
    )

  test('has its title as accessible name, and the newest value of each series with unit in the legend', () => {
    show()
    const figure = screen.getByRole('figure', { name: 'TPS' })
    expect(within(figure).getByText('90 /s')).toBeDefined()
    // the newest row does not know the other one: what it was 59 s ago is not what it is
    expect(within(figure).queryByText('2 /s')).toBeNull()
    expect(within(figure).getByTitle(/^not known now; 2 \/s at /).textContent).toBe('–')
  })

  test('a stale chart and a series that has ended show no value as the present one', () => {
    show({ staleMs: 7_000 })
    expect(screen.queryByText('90 /s')).toBeNull()
    cleanup()
    show({ series: series.map((s) => ({ ...s, ended: true })) })
    expect(screen.queryByText('90 /s')).toBeNull()
  })

  test('the legend names what the bands are: checkpoints, stalls, or both', () => {
    const band = { key: 'a', from: start, to: start + 1_000, label: '' }
    show({ bands: [{ ...band, phase: 'stall' }] })
    expect(screen.getByText('stall')).toBeDefined()
    expect(screen.queryByText('checkpoint write | sync')).toBeNull()
    cleanup()
    show({ bands: [{ ...band, phase: 'write' }] })
    expect(screen.queryByText('stall')).toBeNull()
    expect(screen.getByText('checkpoint write | sync')).toBeDefined()
  })

  test('a series that was sampled a little before the others is still of the present', () => {
    const late = [...rows.slice(0, 2), { at: start + 3_000, commit: 110, rollback: null }]
    show({ rows: late, presentWithinMs: 5_000 })
    expect(screen.getByText('2 /s')).toBeDefined()
  })

  test('a stacked layer of height 0 has no stroke over the layer that is there', () => {
    const layered: ChartRow[] = [0, 1, 2, 3, 4, 5].map((i) => ({
      at: start + i * 1_000,
      commit: 100,
      rollback: i === 3 ? 50 : 0,
    }))
    const { container } = show({ rows: layered, stacked: true })
    const strokes = [...container.querySelectorAll('path.recharts-area-curve')]
    expect(strokes).toHaveLength(2)
    const points = (i: number) => strokes[i]?.getAttribute('d')?.match(/-?[\d.]+,-?[\d.]+/g) ?? []
    expect(points(0)).toHaveLength(6)
    // where it rises from 0 and falls back to it, and nowhere else
    expect(points(1)).toHaveLength(3)
    expect(standaloneSvg(container.querySelector('svg.recharts-surface') as SVGSVGElement)).toContain(
      strokes[1]?.getAttribute('d') ?? 'no stroke',
    )
  })

  test('a stack that is 0 as a whole is drawn once, and one whose layers are all there in full', () => {
    const at = [0, 1, 2].map((i) => start + i * 1_000)
    const idle = at.map((t) => ({ at: t, commit: 0, rollback: 0 }))
    const { container } = show({ rows: idle, stacked: true })
    const lengths = [...container.querySelectorAll('path.recharts-area-curve')].map(
      (p) => p.getAttribute('d')?.match(/,/g)?.length ?? 0,
    )
    expect(lengths.filter((n) => n > 0)).toEqual([3])
    expect(
      drawnRows(
        series,
        at.map((t) => ({ at: t, commit: 1, rollback: 2 })),
        true,
      ).dots.size,
    ).toBe(0)
  })

  test('a point with nothing on either side is drawn as a dot, in a stack at the edge of its layer', () => {
    const lone: ChartRow[] = [
      { at: start, commit: null, rollback: null },
      { at: start + 1_000, commit: 7, rollback: 5 },
      { at: start + 2_000, commit: null, rollback: null },
    ]
    const { container } = show({ rows: lone })
    const dots = [...container.querySelectorAll('path.recharts-line-curve[stroke-linecap="round"]')]
    expect(dots).toHaveLength(2)
    expect(dots.map((d) => d.getAttribute('d'))).toEqual([
      expect.stringMatching(/^M[\d.]+,[\d.]+Z$/),
      expect.stringMatching(/^M[\d.]+,[\d.]+Z$/),
    ])
    const stacked = drawnRows(series, lone, true)
    expect(stacked.rows[1]).toMatchObject({ [dotKey('commit')]: 7, [dotKey('rollback')]: 12 })
  })

  test('one value far above all others leaves the scale to the rest and is told in words', () => {
    const calm: ChartRow[] = Array.from({ length: 30 }, (_, i) => ({
      at: start + i * 1_000,
      commit: i === 12 ? 1_500 : 2 + (i % 3),
    }))
    const one = series.slice(0, 1)
    const { container } = show({ rows: calm, series: one, unit: 'ms', clipsExceptions: true })
    expect(screen.getByText(/1 value above the axis, up to 1,500 ms/)).toBeDefined()
    const ticks = [
      ...container.querySelectorAll('.recharts-yAxis-tick-labels text, .recharts-yAxis text'),
    ].map((t) => t.textContent)
    expect(ticks.at(-1)).toMatch(/^\d ms$/)
    // a burst is no exception, and a few values are no rule
    const burst = calm.map((row, i) => (i > 10 && i < 16 ? { ...row, commit: 1_500 } : row))
    expect(valuesAbove(one, burst, start, start + 60_000)).toBeNull()
    expect(valuesAbove(one, calm.slice(10, 15), start, start + 60_000)).toBeNull()
  })

  test('offers the same numbers as a table, unknown ones as a dash', () => {
    show()
    fireEvent.click(screen.getByRole('button', { name: 'TPS as table' }))
    const table = screen.getByRole('table', { name: 'TPS, values' })
    const lines = within(table).getAllByRole('row')
    expect(lines).toHaveLength(4)
    expect(lines[1]?.textContent).toContain('90 /s')
    expect(lines[1]?.textContent).toContain('–')
  })

  test('says that it is stale, and how old its newest value is', () => {
    show({ staleMs: 7_000 })
    expect(screen.getByText(/stale · 7.0 s/)).toBeDefined()
  })

  test('says that there is nothing instead of drawing a zero', () => {
    show({ rows: [] })
    expect(screen.getByText('No values in this range')).toBeDefined()
  })

  test('arrow keys read values, and Escape lets go', () => {
    show()
    const plot = screen.getByRole('application', { name: /TPS: values by arrow keys/ })
    fireEvent.keyDown(plot, { key: 'Home' })
    expect(within(plot).getByText('100 /s')).toBeDefined()
    fireEvent.keyDown(plot, { key: 'ArrowRight' })
    expect(within(plot).getByText('120 /s')).toBeDefined()
    fireEvent.keyDown(plot, { key: 'Escape' })
    expect(within(plot).queryByText('120 /s')).toBeNull()
  })

  test('a gap is drawn as two lines, not as one across it', () => {
    const two = [...rows.slice(0, 3), { at: start + 59_000, commit: 80, rollback: null }, rows[3] as ChartRow]
    const { container } = show({ rows: two, series: series.slice(0, 1) })
    const path = container.querySelector('.recharts-line-curve')?.getAttribute('d') ?? ''
    expect(path.match(/M/g)).toHaveLength(2)
  })
})

describe('the largest value within a point', () => {
  const tps = { key: 'tps', label: 'transactions', color: 1, maximumKey: 'tps maximum' } as const
  const averaged: ChartRow[] = [
    { at: start, tps: 10, 'tps maximum': 90 },
    { at: start + 60_000, tps: 12, 'tps maximum': null },
    { at: start + 120_000, tps: null, 'tps maximum': null },
  ]

  test('is shaded from the line on, and the axis holds it', () => {
    expect(withMaximum([tps], averaged)).toEqual([tps])
    const span = maximumSpan(tps.key, tps.maximumKey)
    expect(averaged.map(span)).toEqual([[10, 90], null, null])
    expect(drawnExtent([tps], averaged, false, start, start + 120_000)).toEqual({ min: 10, max: 90 })
  })

  test('is none of single samples, and then nothing is shaded nor told', () => {
    const single = averaged.map(({ at, tps: value }) => ({
      at,
      tps: value,
      'tps maximum': null,
    })) as ChartRow[]
    expect(withMaximum([tps], single)).toEqual([])
  })

  test('stands in the table as a column of its own', () => {
    render(
      <TooltipProvider>
        <TimeSeriesChart
          title="TPS"
          unit="1/s"
          series={[tps]}
          rows={averaged}
          from={start}
          to={start + 120_000}
        />
      </TooltipProvider>,
    )
    expect(screen.getByText('shaded up to the largest value')).toBeTruthy()
    fireEvent.click(screen.getByRole('button', { name: 'TPS as table' }))
    expect(screen.getByRole('columnheader', { name: /transactions, largest/ })).toBeTruthy()
    cleanup()
  })
})
