import { expect, test } from 'vitest'
import { ReplayDelay } from './replay-delay'

test('a standby that was idle is behind since something waits, not since its last transaction', () => {
  const delay = new ReplayDelay()
  expect([0, 0, 0].map((said, second) => delay.of(said, second * 1_000))).toEqual([0, 0, 0])
  // the primary writes again after 21 s, and the first of it is received and not replayed yet
  expect(delay.of(21, 2_400)).toBeCloseTo(0.4)
  expect(delay.of(0, 3_000)).toBe(0)
})

test('replay that is behind for long is told in full', () => {
  const delay = new ReplayDelay()
  delay.of(0, 0)
  expect(delay.of(4, 5_000)).toBe(4)
  expect(delay.of(64, 65_000)).toBe(64)
  // of what was never seen caught up the server's reading is all there is
  expect(new ReplayDelay().of(30, 1_000)).toBe(30)
})

test('a primary has none, nor has a standby of before', () => {
  const delay = new ReplayDelay()
  delay.of(0, 0)
  expect(delay.of(null, 1_000)).toBeNull()
  expect(delay.of(12, 2_000)).toBe(12)
})
