import { expect, test } from 'vitest'
import { RecentPasswords } from './recent-passwords'

test('a password is given again only to whom it was given, and only for five minutes', () => {
  let now = 0
  const recent = new RecentPasswords(() => now)
  recent.keep('olga', 'key-1', 'secret')
  expect(recent.find('olga', 'key-1')).toBe('secret')
  expect(recent.find('eve', 'key-1')).toBeNull()
  expect(recent.find('olga', 'key-2')).toBeNull()
  now = 5 * 60_000
  expect(recent.find('olga', 'key-1')).toBeNull()
})
