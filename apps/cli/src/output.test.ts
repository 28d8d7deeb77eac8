import { fault } from '@floe/domain'
import { expect, test } from 'vitest'
import { duration, exitStatusOf, table } from './output'

test('a mistake in the call ends with 2, everything else that fails with 1', () => {
  expect(exitStatusOf(fault('usage.port', 'x'))).toBe(2)
  expect(exitStatusOf(fault('instance.not_found', 'x'))).toBe(1)
})

test('an unknown cell is a dash and never 0; numbers stand to the right', () => {
  expect(
    table(
      ['name', 'tps'],
      [
        ['a', 5],
        ['longer', null],
        ['b', 1200],
      ],
    ),
  ).toBe('name     tps\na          5\nlonger     –\nb       1200')
})

test('durations read like speech', () => {
  expect([12, 1_500, 59_400, 61_000, 3_700_000, 90_000_000, null].map(duration)).toEqual([
    '12 ms',
    '2 s',
    '59 s',
    '1 min 1 s',
    '1 h 1 min',
    '1 d 1 h',
    '–',
  ])
})
