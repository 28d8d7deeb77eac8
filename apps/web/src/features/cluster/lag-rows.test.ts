import { expect, test } from 'vitest'
import { lagRows } from './lag-rows'

const history = (points: [at: number, lag: number | null, gapBefore?: boolean][]) => ({
  stepSeconds: 5,
  points: points.map(([at, lag, gapBefore = false]) => ({ at, gapBefore, average: [lag] })),
})

test('the line of a standby ends where nobody measured it, also where there is no other', () => {
  const rows = lagRows([
    {
      key: 'a',
      history: history([
        [4_900, 0.1],
        [9_900, 0.2],
        [64_900, 0.3, true],
      ]),
    },
  ])
  expect(rows.map((r) => r.a)).toEqual([0.1, 0.2, null, 0.3])
})

test('a standby that is away has no line while the other one goes on, and both stand in the same rows', () => {
  const rows = lagRows([
    {
      key: 'a',
      history: history([
        [4_900, 1],
        [9_900, 1],
        [14_900, 1],
        [19_900, 1],
        [24_900, 1],
      ]),
    },
    {
      key: 'b',
      history: history([
        [4_100, 2],
        [9_100, 2],
        [24_100, 2, true],
      ]),
    },
  ])
  expect(rows.map(({ a, b }) => [a, b])).toEqual([
    [1, 2],
    [1, 2],
    [1, null],
    [1, null],
    [1, 2],
  ])
})

test('a standby of which nothing is stored yet has no values, and breaks nobody’s line', () => {
  expect(
    lagRows([
      { key: 'a', history: undefined },
      { key: 'b', history: history([[1_000, 0]]) },
    ]),
  ).toEqual([{ at: 1_000, a: null, b: 0 }])
})
