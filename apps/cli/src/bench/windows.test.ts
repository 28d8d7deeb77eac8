import { expect, test } from 'vitest'
import { pairedCost, parseProgress, schedule, windowMeans } from './windows'

test('pgbench’s own lines are read, with their moment', () => {
  const output =
    'starting\nprogress: 1763712000.5 s, 812.0 tps, lat 4.9 ms stddev 1.2, 0 failed\nprogress: 1763712001.5 s, 790.5 tps, lat 5.0 ms stddev 1.3, 0 failed\n'
  expect(parseProgress(output)).toEqual([
    { at: 1763712000500, tps: 812 },
    { at: 1763712001500, tps: 790.5 },
  ])
})

test('a second that reaches over a switch, or lies in the settling time, counts for no window', () => {
  const progress = [1_000, 2_000, 3_000, 4_000, 5_000, 6_000].map((at) => ({ at, tps: at }))
  expect(windowMeans(progress, [{ on: true, from: 1_500, to: 5_500 }], 1_000)).toEqual([4_500])
  expect(() => windowMeans(progress, [{ on: true, from: 9_000, to: 10_000 }], 0)).toThrow('no second')
})

test('a cost of 2 % is found though the machine grows slower all the while', () => {
  const windows = schedule(10).map((on, i) => ({ on, from: i, to: i + 1 }))
  const means = windows.map(({ on }, i) => 1_000 * (1 - i * 0.002) * (on ? 0.98 : 1))
  const cost = pairedCost(windows, means)
  expect(cost.percent).toBeGreaterThan(1.7)
  expect(cost.percent).toBeLessThan(2.3)
  expect(cost.low).toBeLessThanOrEqual(cost.percent)
  expect(cost.high).toBeGreaterThanOrEqual(cost.percent)
  expect(cost.pairs).toHaveLength(10)
})
