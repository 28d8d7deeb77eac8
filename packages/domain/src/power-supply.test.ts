import { expect, test } from 'vitest'
import {
  apartOf,
  apartTitle,
  PowerSupply,
  powerFailureCover,
  SourceApart,
  sharesFailure,
} from './power-supply'
import { FLASHBACK_LOG_SOURCE } from './protection'

const at = (hostId: string, powerSupply: string | null = null) => ({ hostId: hostId as never, powerSupply })
const member = { source: 'h:1/postgres' }

test('a source is as far away as is known, and never further', () => {
  expect(apartOf(at('a', 'x'), member, at('a', 'x'))).toBe('same-host')
  expect(apartOf(at('a'), member, at('a'))).toBe('same-host')
  expect(apartOf(at('a', 'x'), member, at('b', 'x'))).toBe('same-supply')
  expect(apartOf(at('a', 'x'), member, at('b', 'y'))).toBe('other-supply')
  expect(apartOf(at('a', 'x'), member, at('b'))).toBe('unknown-supply')
  expect(apartOf(at('a'), member, at('b', 'x'))).toBe('unknown-supply')
  expect(apartOf(at('a'), member, at('b'))).toBe('unknown-supply')
  expect(apartOf(at('a', 'x'), member, undefined)).toBeNull()
  expect(apartOf(undefined, member, at('b', 'x'))).toBeNull()
  expect(apartOf(at('a'), { source: FLASHBACK_LOG_SOURCE }, undefined)).toBe('own-log')
})

test('the same host and the same supply share a failure; what is unknown is not called shared', () => {
  const shared = (
    ['own-log', 'same-host', 'same-supply', 'other-supply', 'unknown-supply', null] as const
  ).filter(sharesFailure)
  expect(shared).toEqual(['same-host', 'same-supply'])
})

test('each distance has words of its own; of a source whose host is unknown, so is the supply', () => {
  const titles = [...SourceApart.options, null].map(apartTitle)
  expect(new Set(titles).size).toBe(titles.length)
  expect(apartTitle(null)).toBe('power supply unknown')
  expect(apartTitle('unknown-supply')).toBe('other host, power supply unknown')
})

const cover = (...apart: (SourceApart | null)[]) =>
  powerFailureCover({
    state: 'protected',
    sources: apart.map((a, i) => ({ source: `h${i}`, healthy: true, apart: a })),
  })

test('the best healthy source says which failures are covered', () => {
  expect(cover('same-host')).toMatchObject({ tone: 'warn', title: 'Power failure: same host' })
  expect(cover('same-supply', 'same-host')).toMatchObject({
    tone: 'warn',
    title: 'Power failure: same supply',
  })
  expect(cover('same-supply', 'unknown-supply')).toMatchObject({ tone: 'neutral' })
  expect(cover('same-host', null)).toMatchObject({ tone: 'neutral', title: 'Power failure: unknown' })
  expect(cover('unknown-supply', 'other-supply')).toMatchObject({ tone: 'good' })
  expect(cover('same-host', 'own-log')?.meaning).toMatch(/survives a power failure of every member/)
})

test('a source that is not healthy covers nothing, and images need no source', () => {
  const sources = [
    { source: 'a', healthy: false, apart: 'other-supply' as const },
    { source: 'b', healthy: true, apart: 'same-host' as const },
  ]
  expect(powerFailureCover({ state: 'protected', sources })).toMatchObject({ tone: 'warn' })
  for (const state of ['full_page_writes', 'exposed', 'overridden'] as const)
    expect(powerFailureCover({ state, sources })).toBeNull()
})

test('a power supply has a name that can be shown', () => {
  expect(PowerSupply.parse(' site A, feed 2 ')).toBe('site A, feed 2')
  for (const name of ['', ' ', 'x'.repeat(64), 'a\tb'])
    expect(PowerSupply.safeParse(name).success).toBe(false)
})
