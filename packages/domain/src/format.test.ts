import { expect, test } from 'vitest'
import { formatDuration } from './format'

test('a duration below an hour is told to the second, and never rounded down by a part that counts', () => {
  const told: [number, string][] = [
    [450, '450 ms'],
    [7_040, '7.0 s'],
    [9_960, '10 s'],
    [59_700, '1 min'],
    [60_000, '1 min'],
    [119_000, '1 min 59 s'],
    [269_707, '4 min 30 s'],
    [3_599_700, '1.0 h'],
    [7_200_000, '2.0 h'],
    [2 * 86_400_000, '2.0 d'],
    [Number.NaN, '–'],
  ]
  expect(told.map(([ms]) => formatDuration(ms))).toEqual(told.map(([, words]) => words))
})
