import { expect, test } from 'vitest'
import { SignInLimit } from './sign-in-limit'

const at = (email: string, peer: string | null = '10.0.0.1', device: string | null = null) => ({
  email,
  peer,
  device,
})

test('five wrong passphrases within a minute make a peer wait for this account, and nobody else', () => {
  let now = 1_000_000
  const limit = new SignInLimit(() => now)
  for (let i = 0; i < 5; i++) {
    expect(limit.waitMs(at('a@example.org'))).toBe(0)
    limit.begin(at('A@example.org'))
    now += 1_000
  }
  expect(limit.waitMs(at('a@example.org'))).toBe(55_000)
  expect(limit.waitMs(at('a@example.org', '10.0.0.2'))).toBe(0)
  expect(limit.waitMs(at('b@example.org'))).toBe(0)
  now += 55_000
  expect(limit.waitMs(at('a@example.org'))).toBe(0)
})

test('an account that a hundred peers guess at makes all wait but the browsers that were in it before', () => {
  const limit = new SignInLimit(() => 0)
  for (let i = 0; i < 100; i++) limit.begin(at('a@example.org', `10.0.1.${i}`))
  expect(limit.waitMs(at('a@example.org', '10.0.0.9'))).toBe(60_000)
  expect(limit.waitMs(at('a@example.org', '10.0.0.9', 'device'))).toBe(0)
  // a browser that was in it before is bounded by itself
  for (let i = 0; i < 5; i++) limit.begin(at('a@example.org', '10.0.0.9', 'device'))
  expect(limit.waitMs(at('a@example.org', '10.0.0.9', 'device'))).toBe(60_000)
  expect(limit.waitMs(at('a@example.org', '10.0.0.9', 'another'))).toBe(0)
})

test('attempts at the same moment count before they are answered; one without a wrong passphrase is taken back', () => {
  const limit = new SignInLimit(() => 0)
  const begun = Array.from({ length: 5 }, () => limit.begin(at('a@example.org')))
  expect(limit.waitMs(at('a@example.org'))).toBe(60_000)
  begun[0]?.()
  expect(limit.waitMs(at('a@example.org'))).toBe(0)
})

test('a success forgets what was wrong before it', () => {
  const limit = new SignInLimit(() => 0)
  for (let i = 0; i < 4; i++) limit.begin(at('a@example.org'))
  limit.begin(at('a@example.org'))()
  limit.succeeded(at('a@example.org'))
  limit.begin(at('a@example.org'))
  expect(limit.waitMs(at('a@example.org'))).toBe(0)
})

test('a peer that tries one account after the other has to wait; a proxy on this machine is given more', () => {
  const limit = new SignInLimit(() => 0)
  for (let i = 0; i < 30; i++) {
    expect(limit.waitMs(at(`n${i}@example.org`, '10.0.0.1'))).toBe(0)
    limit.begin(at(`n${i}@example.org`, '10.0.0.1'))
    limit.begin(at(`m${i}@example.org`, '127.0.0.1'))
  }
  expect(limit.waitMs(at('new@example.org', '10.0.0.1'))).toBe(60_000)
  expect(limit.waitMs(at('new@example.org', '10.0.0.2'))).toBe(0)
  expect(limit.waitMs(at('new@example.org', '127.0.0.1'))).toBe(0)
  for (let i = 0; i < 270; i++) limit.begin(at(`k${i}@example.org`, '127.0.0.1'))
  expect(limit.waitMs(at('new@example.org', '127.0.0.1'))).toBe(60_000)
})
