import { expect, test } from 'vitest'
import { measuredWrites, newestOf, writesMetrics } from './measured-writes'

const history = (...averages: (number | null)[][]) => ({
  metrics: writesMetrics,
  points: averages.map((average, i) => ({ at: i, intervalMs: (i + 1) * 1_000, average })),
})

test('a point counts for as long as it was measured; images that were left out count too', () => {
  expect(measuredWrites(history([100, 0, 200, 1], [400, 200, 800, 1]))).toEqual({
    imagesPerSecond: (100 * 1_000 + 400 * 2_000) / 3_000,
    omittedBytesPerSecond: (200 * 2_000) / 3_000,
    walBytesPerSecond: (200 * 1_000 + 800 * 2_000) / 3_000,
    measuredMs: 3_000,
  })
})

test('what was not measured is not zero', () => {
  expect(measuredWrites(history([null, null, 500, 1], [50, null, 100, 1]))).toEqual({
    imagesPerSecond: 50,
    omittedBytesPerSecond: 0,
    walBytesPerSecond: 100,
    measuredMs: 2_000,
  })
  expect(measuredWrites(history([null, null, null, null]))).toBeNull()
  expect(measuredWrites(history())).toBeNull()
})

test('the newest known value of a metric', () => {
  expect(newestOf(history([1, 1, 1, 7], [1, 1, 1, null]), 'disk_free')).toBe(7)
  expect(newestOf(history(), 'disk_free')).toBeNull()
})
