import { expect, test } from 'vitest'
import { SignInLimit } from './sign-in-limit'

const at = (email: string, peer: string | null = '10.0.0.1') => ({ email, peer })

test('five failures within a minute make an account wait until the first of them is a minute old', () => {
  let now = 1_000_000
  const limit = new SignInLimit(() => now)
  for (let i = 0; i < 5; i++) {
    expect(limit.waitMs(at('a@example.org'))).toBe(0)
    limit.failed(at('A@example.org', `10.0.0.${i}`))
    now += 1_000
  }
  expect(limit.waitMs(at('a@example.org', '10.0.0.99'))).toBe(55_000)
  expect(limit.waitMs(at('b@example.org'))).toBe(0)
  now += 55_000
  expect(limit.waitMs(at('a@example.org'))).toBe(0)
})

test('a success forgets the account’s failures before it', () => {
  const limit = new SignInLimit(() => 0)
  for (let i = 0; i < 4; i++) limit.failed(at('a@example.org'))
  limit.succeeded(at('a@example.org'))
  limit.failed(at('a@example.org'))
  expect(limit.waitMs(at('a@example.org'))).toBe(0)
})

test('a peer that tries one account after the other has to wait; a proxy on this machine is given more', () => {
  const limit = new SignInLimit(() => 0)
  for (let i = 0; i < 30; i++) {
    expect(limit.waitMs(at(`n${i}@example.org`, '10.0.0.1'))).toBe(0)
    limit.failed(at(`n${i}@example.org`, '10.0.0.1'))
    limit.failed(at(`m${i}@example.org`, '127.0.0.1'))
  }
  expect(limit.waitMs(at('new@example.org', '10.0.0.1'))).toBe(60_000)
  expect(limit.waitMs(at('new@example.org', '10.0.0.2'))).toBe(0)
  expect(limit.waitMs(at('new@example.org', '127.0.0.1'))).toBe(0)
  for (let i = 0; i < 270; i++) limit.failed(at(`k${i}@example.org`, '127.0.0.1'))
  expect(limit.waitMs(at('new@example.org', '127.0.0.1'))).toBe(60_000)
})

test('failures beyond sixty a minute leave no audit row; the next that does says how many there were', () => {
  let now = 0
  const limit = new SignInLimit(() => now)
  const audited = Array.from({ length: 100 }, (_, i) => limit.failed(at(`${i}@example.org`, `10.1.0.${i}`)))
  expect(audited.filter((a) => a !== null)).toHaveLength(60)
  now += 61_000
  expect(limit.failed(at('later@example.org'))).toBe(40)
  expect(limit.failed(at('later@example.org'))).toBe(0)
})
