import { expect, test } from 'vitest'
import { decodePoints, encodePoints } from './points'

test('points come back as they were, to seven digits; an unknown value stays unknown, 0 stays 0', () => {
  const points = [
    { at: 1_790_000_000_123, value: 1_234.5678 },
    { at: 1_790_000_001_124, value: null },
    { at: 1_790_000_002_120.5, value: 0 },
    { at: 1_790_000_001_000, value: -1e-9 },
    { at: 1_790_000_063_000, value: 9.87654321e21 },
  ]
  const back = decodePoints(encodePoints(points))
  expect(back.map((p) => p.at)).toEqual(points.map((p) => p.at))
  expect(back.map((p) => p.value)).toEqual([1_234.568, null, 0, -1e-9, 9.876543e21])
  expect(decodePoints(encodePoints([]))).toEqual([])
})
