import { expect, test } from 'vitest'
import { SignInLimit } from './sign-in-limit'

test('five failures within a minute make an address wait until the first of them is a minute old', () => {
  let now = 1_000_000
  const limit = new SignInLimit(() => now)
  for (let i = 0; i < 5; i++) {
    expect(limit.waitMs('a@example.org')).toBe(0)
    limit.failed('A@example.org')
    now += 1_000
  }
  expect(limit.waitMs('a@example.org')).toBe(55_000)
  expect(limit.waitMs('b@example.org')).toBe(0)
  now += 55_000
  expect(limit.waitMs('a@example.org')).toBe(0)
})

test('a success forgets the failures before it', () => {
  const limit = new SignInLimit(() => 0)
  for (let i = 0; i < 4; i++) limit.failed('a@example.org')
  limit.succeeded('a@example.org')
  limit.failed('a@example.org')
  expect(limit.waitMs('a@example.org')).toBe(0)
})
