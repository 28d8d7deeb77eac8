import { expect, test } from 'vitest'
import { KeptAsideName, ownWalWords } from './kept-aside'

test('what is unknown is said, and is never nothing', () => {
  expect(ownWalWords({ bytes: 3_250_586, commits: 1_204 })).toBe(
    '3.1 MB of WAL, 1,204 committed transactions',
  )
  expect(ownWalWords({ bytes: 96, commits: 1 })).toMatch(/ of WAL, 1 committed transaction$/)
  expect(ownWalWords({ bytes: null, commits: null })).toBe(
    'an unknown amount of WAL, an unknown number of committed transactions',
  )
})

test('a name leads nowhere but beside the data directory', () => {
  expect(KeptAsideName.safeParse('kept-aside-20260101T000000000Z-31').success).toBe(true)
  for (const name of ['../x', 'kept-aside-20260101T000000000Z-1/..', 'kept-aside-1', 'pgdata', ''])
    expect(KeptAsideName.safeParse(name).success).toBe(false)
})
