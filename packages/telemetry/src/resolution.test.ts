import { expect, test } from 'vitest'
import { chooseResolution, isContinuous, joins, stepFor, storedSteps, Weighing } from './resolution'

test('any range has at most as many points as are asked for', () => {
  for (const hours of [0.05, 0.25, 1, 6, 24, 24 * 30, 24 * 90, 24 * 4_000])
    expect((hours * 3_600) / stepFor(hours * 3_600_000, 600)).toBeLessThanOrEqual(600)
  expect(stepFor(300_000, 600)).toBe(1)
})

test('a point is made of whole buckets of what it is read from', () => {
  const now = 1_795_000_000_000
  const retention = storedSteps.map((stepSeconds, i) => ({ stepSeconds, keepSeconds: 3_600 * 10 ** (i + 1) }))
  for (const minutes of [1, 15, 60, 700, 6_000, 50_000]) {
    const range = { from: now - minutes * 60_000, to: now, maxPoints: 600, now }
    const { stepSeconds, sourceSeconds } = chooseResolution(range, retention)
    expect(stepSeconds % sourceSeconds).toBe(0)
  }
})

const sample = (second: number, covers = 1) => ({ at: second * 1_000, intervalMs: covers * 1_000 })

test('samples join when less than a tick and a half between them was not measured', () => {
  expect(isContinuous(sample(0), sample(1))).toBe(true)
  expect(isContinuous(sample(0), sample(2))).toBe(true)
  expect(isContinuous(sample(0), sample(3, 3))).toBe(true)
  expect(isContinuous(sample(0), sample(5))).toBe(false)
})

test('after more than 10 s there is a gap, even where the counters cover it', () => {
  expect(isContinuous(sample(0), sample(10, 10))).toBe(true)
  expect(isContinuous(sample(0), sample(11, 11))).toBe(false)
})

test('of a roll-up up to half a bucket need not be measured, and points may be two steps apart', () => {
  const minute = { stepSeconds: 60, sourceSeconds: 60 } as const
  expect(joins({ at: 0 }, { from: 30_000, at: 60_000 }, minute)).toBe(true)
  expect(joins({ at: 0 }, { from: 31_000, at: 60_000 }, minute)).toBe(false)
  expect(joins({ at: 0 }, { from: 1_000, at: 120_000 }, minute)).toBe(true)
  expect(joins({ at: 0 }, { from: 1_000, at: 121_000 }, minute)).toBe(false)
  // read from samples, what is not measured counts as between samples
  expect(joins({ at: 0 }, { from: 2_000, at: 60_000 }, { stepSeconds: 60, sourceSeconds: 1 })).toBe(false)
})

test('an average weighs each value by the time it covers; a maximum does not', () => {
  const w = new Weighing(2)
  w.add([100, 1], 1_000)
  w.add([0, null], 3_000)
  expect(w.average()).toEqual([25, 1])
  expect(w.maximum()).toEqual([100, 1])
  expect(w.coveredMs).toBe(4_000)
})

test('what nobody knew stays unknown, and the maximum of what was averaged before counts', () => {
  const w = new Weighing(2)
  w.add([5, null], 1_000, [9, null])
  w.add([7, undefined], 1_000)
  expect(w.average()).toEqual([6, null])
  expect(w.maximum()).toEqual([9, null])
})
