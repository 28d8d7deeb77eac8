import { expect, test } from 'vitest'
import { noOverflow, overflowAfter } from './table-overflow'

const box = (scrollWidth: number, clientWidth: number, scrollLeft = 0) => ({
  scrollWidth,
  clientWidth,
  scrollLeft,
})

test('what is hidden to either side is told, and a pixel of rounding is not', () => {
  expect(overflowAfter(noOverflow, box(501, 500))).toBe(noOverflow)
  expect(overflowAfter(noOverflow, box(700, 500, 50))).toMatchObject({ left: 50, right: 149 })
})

test('a first column that wraps makes the table fit, and goes on wrapping until there is room without', () => {
  const wraps = overflowAfter(noOverflow, box(700, 500))
  expect(wraps.neededWidth).toBe(700)
  const fits = overflowAfter(wraps, box(500, 500))
  expect(fits).toEqual({ left: 0, right: 0, neededWidth: 700 })
  // nothing takes turns
  expect(overflowAfter(fits, box(500, 500))).toBe(fits)
  expect(overflowAfter(fits, box(600, 600))).toMatchObject({ neededWidth: 700 })
  expect(overflowAfter(fits, box(720, 720))).toEqual(noOverflow)
})
