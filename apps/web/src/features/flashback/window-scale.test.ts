import { FlashbackTime, millisecondsOf } from '@floe/domain'
import { expect, test } from 'vitest'
import { areaPaths, largestIn, momentAt, movedBy, shareOf, within, writtenMoment } from './window-scale'

const hour = { from: 0, to: 3_600_000 }

test('a moment and its place in the window are inverse, and never outside', () => {
  expect(momentAt(hour, shareOf(hour, 900_000))).toBe(900_000)
  expect(momentAt(hour, 1.4)).toBe(3_600_000)
  expect(shareOf(hour, -5)).toBe(0)
  expect(shareOf({ from: 5, to: 5 }, 5)).toBe(0)
  expect(within(hour, 4_000_000)).toBe(3_600_000)
})

test('keys move the moment by a second, with Shift by ten, and stop at the ends of the window', () => {
  expect(movedBy('ArrowRight', false, hour, 0)).toBe(1_000)
  expect(movedBy('ArrowLeft', true, hour, 60_000)).toBe(50_000)
  expect(movedBy('PageUp', false, hour, 0)).toBe(360_000)
  expect(movedBy('PageUp', false, hour, 0, { from: 0, to: 60_000 })).toBe(6_000)
  expect(movedBy('ArrowLeft', false, hour, 5)).toBe(0)
  expect(movedBy('End', false, hour, 5)).toBe(3_600_000)
  expect(movedBy('Home', false, hour, 5)).toBe(0)
  expect(movedBy('x', false, hour, 5)).toBeNull()
})

test('where nothing was measured nothing is drawn', () => {
  const at = (at: number, value: number | null, gapBefore = false) => ({ at, value, gapBefore })
  const paths = areaPaths(
    [at(0, 10), at(900_000, 20), at(1_800_000, null), at(2_700_000, 20), at(3_600_000, 0, true)],
    hour,
  )
  expect(paths).toEqual([
    'M0 100L0 52.5L250 5L250 100Z',
    'M750 100L750 5L750 100Z',
    'M1000 100L1000 100L1000 100Z',
  ])
  expect(areaPaths([at(-1, 10)], hour)).toEqual([])
})

test('an exact moment has its time zone, and is read as what it was', () => {
  const at = Date.UTC(2026, 10, 23, 22, 40, 0, 500)
  expect(writtenMoment(at, 60)).toBe('2026-11-23T23:40:00.500+01:00')
  expect(writtenMoment(at, -210)).toBe('2026-11-23T19:10:00.500-03:30')
  expect(writtenMoment(at + 0.123, 60)).toBe('2026-11-23T23:40:00.500123+01:00')
  for (const offset of [0, 60, -210, 345]) {
    const text = writtenMoment(at, offset)
    expect(FlashbackTime.parse(text)).toBe(text)
    expect(millisecondsOf(text)).toBe(at)
  }
})

test('the largest rate is told of the window alone', () => {
  const points = [
    { at: -1, value: 99 },
    { at: 0, value: 3 },
    { at: 5, value: null },
    { at: 9, value: 7 },
  ]
  expect(largestIn(points, hour)).toBe(7)
  expect(largestIn(points, { from: 4, to: 6 })).toBeNull()
})
