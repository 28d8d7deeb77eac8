import { expect, test } from 'vitest'
import { Bell } from './bell'

test('what rings while nobody waits ends the next wait at once, and only that one', async () => {
  const bell = new Bell()
  bell.ring()
  await bell.wait(60_000)
  expect(bell.takeRing()).toBe(true)
  expect(bell.takeRing()).toBe(false)
  const waiting = bell.wait(60_000)
  bell.ring()
  await waiting
  bell.takeRing()
  const begun = performance.now()
  await bell.wait(50)
  expect(performance.now() - begun).toBeGreaterThan(40)
})
