import type { Lsn } from '@floe/domain'
import { expect, test } from 'vitest'
import { replayLagWords } from './replay-lag'

const seen = (replayedLsn: string | null, replayLagMs: number | null = null) => ({
  replayedLsn: replayedLsn as Lsn | null,
  replayLagMs,
})

test('a lag is PostgreSQL’s own where it tells one', () => {
  expect(replayLagWords(seen('0/3000000', 1_500), '0/3000010')).toBe('1.5 s')
})

test('without one it is 0 s only where everything the primary has is replayed, and unknown else', () => {
  expect(replayLagWords(seen('0/3000010'), '0/3000010')).toBe('0 s')
  expect(replayLagWords(seen('0/3000000'), '0/3000010')).toBe('–')
  expect(replayLagWords(seen(null), '0/3000010')).toBe('–')
  expect(replayLagWords(seen('0/3000010'), null)).toBe('–')
  expect(replayLagWords(undefined, '0/3000010')).toBe('–')
})
