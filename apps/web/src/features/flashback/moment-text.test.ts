import { expect, test } from 'vitest'
import { momentOfText, momentText } from './moment-text'

const now = new Date(2026, 10, 24, 14, 30).getTime()
const local = (h: number, m: number, s = 0, ms = 0, day = 24) =>
  new Date(2026, 10, day, h, m, s, ms).getTime()

test('a moment that is written is read as what it was', () => {
  const at = local(14, 3, 12, 45)
  expect(momentText(at)).toBe('2026-11-24 14:03:12.045')
  expect(momentOfText(momentText(at), now)).toBe(at)
  // what is suggested lies a microsecond before a commit
  expect(momentText(at + 0.007)).toBe('2026-11-24 14:03:12.045007')
  expect(momentOfText(momentText(at + 0.007), now)).toBe(at + 0.007)
})

test('a time with a zone, as a log has it, means the same everywhere', () => {
  const at = Date.UTC(2026, 10, 24, 13, 3, 12, 345)
  for (const text of [
    '2026-11-24 14:03:12.345+01',
    '2026-11-24T13:03:12.345Z',
    '2026-11-24 13:03:12.345 UTC',
    '2026-11-24 09:33:12.345-03:30',
  ])
    expect([text, momentOfText(text, now)]).toEqual([text, at])
  expect(momentOfText('2026-11-24 14:03:12.345678+01', now)).toBe(at + 0.678)
})

test('a time alone is its latest one, and an age counts from now', () => {
  expect(momentOfText('14:03', now)).toBe(local(14, 3))
  expect(momentOfText('14:03:12.5', now)).toBe(local(14, 3, 12, 500))
  expect(momentOfText('15:00', now)).toBe(local(15, 0, 0, 0, 23))
  for (const text of ['10 min ago', '10m', '-10 min', '10 minutes ago', '600 s'])
    expect([text, momentOfText(text, now)]).toEqual([text, now - 600_000])
  expect(momentOfText('1.5 h ago', now)).toBe(now - 5_400_000)
})

test('what is no time, or none that exists, is refused', () => {
  for (const text of [
    '',
    'yesterday',
    '25:00',
    '14:61',
    '2026-13-01 10:00',
    '2026-11-31 10:00',
    '2026-11-24',
  ])
    expect([text, momentOfText(text, now)]).toEqual([text, null])
})
