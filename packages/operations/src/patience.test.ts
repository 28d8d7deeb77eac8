import { expect, test } from 'vitest'
import { PATIENCE, patienceWith } from './patience'

test('the product’s own patience keeps the relations between its bounds', () => {
  expect(patienceWith({})).toEqual(PATIENCE)
})

test.each([
  ['a needed host is not waited for as long as a question takes', { neededMs: 2_000 }],
  ['a host is left as it is before it was asked once', { undoGiveUpMs: 2_000 }],
  ['a step is given up before its host was asked once', { cancelGiveUpMs: 2_000, withoutHostMs: 0 }],
  ['a step is given up before it can go on without its host', { cancelGiveUpMs: 4_000 }],
])('refused: %s', (_what, changes) => {
  expect(() => patienceWith(changes)).toThrow(RangeError)
})
