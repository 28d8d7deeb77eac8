import { expect, test } from 'vitest'
import {
  type FlashbackLog,
  FlashbackTime,
  flashbackTimeOf,
  forecastFlashback,
  millisecondsOf,
  momentBefore,
  windowEndedLately,
  windowShortenedLately,
} from './flashback'

const limits = { recoveryArea: true, rotationMs: 10_800_000, keepBytes: 2 ** 31, maxBytes: 10 * 2 ** 30 }
// 50 images a second, half of them left out of the WAL, of 2,000 bytes each
const measured = { imagesPerSecond: 25, omittedBytesPerSecond: 200_000, walBytesPerSecond: 250_000 }
const sample = { pages: 64, pageBytes: 8_000, imageBytes: 2_000 }

test('the window is as long as the rotation time where the log has room for it, with its WAL', () => {
  expect(forecastFlashback(measured, sample, limits)).toEqual({
    bytesPerHour: 360_000_000,
    windowMs: 10_800_000,
    logBytes: 1_080_000_000,
    walBytes: 2_700_000_000,
  })
})

test('its size ends the window earlier', () => {
  const { windowMs, logBytes } = forecastFlashback(measured, sample, { ...limits, maxBytes: 360_000_000 })
  expect(windowMs).toBe(3_600_000)
  expect(logBytes).toBe(360_000_000)
  expect(forecastFlashback(measured, sample, { ...limits, maxBytes: null }).windowMs).toBe(10_800_000)
})

test('without a recovery area the segments to keep decide, and no WAL is kept for it', () => {
  const forecast = forecastFlashback(measured, sample, {
    ...limits,
    recoveryArea: false,
    keepBytes: 720_000_000,
  })
  expect(forecast).toMatchObject({ windowMs: 7_200_000, logBytes: 720_000_000, walBytes: 0 })
})

test('of an instance that writes nothing no end of the window is foretold', () => {
  const idle = { imagesPerSecond: 0, omittedBytesPerSecond: 0, walBytesPerSecond: 0 }
  expect(forecastFlashback(idle, sample, { ...limits, recoveryArea: false })).toMatchObject({
    windowMs: null,
    logBytes: 0,
  })
})

test('a moment has a date, a time and a time zone that exist', () => {
  const at = Date.UTC(2026, 10, 23, 22, 40, 0)
  for (const text of [
    '2026-11-23T22:40:00Z',
    '2026-11-23 22:40:00+00',
    '2026-11-23T23:40:00+01:00',
    '2026-11-23T23:40:00.000000+0100',
    '2026-11-23 22:40 Z',
  ]) {
    expect([text, FlashbackTime.safeParse(text).success]).toEqual([text, true])
    expect(millisecondsOf(text)).toBe(at)
  }
  for (const text of ['2026-11-23T22:40:00', 'yesterday', '2026-13-23T22:40:00Z', 'now()', ''])
    expect([text, FlashbackTime.safeParse(text).success]).toEqual([text, false])
})

test('an end of the window is news for an hour, and none where the log is off', () => {
  const log = { state: 'on', lastEndedAt: 1_000 } as FlashbackLog
  expect(windowEndedLately(log, 3_600_000)).toBe(true)
  expect(windowEndedLately(log, 3_601_000)).toBe(false)
  expect(windowEndedLately({ ...log, state: 'off' }, 2_000)).toBe(false)
  expect(windowEndedLately({ ...log, lastEndedAt: null }, 2_000)).toBe(false)
})

test('a window that gave way is news for an hour since it last did', () => {
  const shortened = { times: 2, lastAt: 1_000, reason: 'the flashback log has reached its size limit' }
  const log = { state: 'on', shortened } as FlashbackLog
  expect(windowShortenedLately(log, 3_600_000)).toBe(shortened)
  expect(windowShortenedLately(log, 3_601_000)).toBeNull()
  expect(windowShortenedLately({ ...log, state: 'off' }, 2_000)).toBeNull()
  expect(windowShortenedLately({ ...log, shortened: undefined }, 2_000)).toBeNull()
})

test('the moment before a commit is a microsecond earlier, and written so', () => {
  const committed = Date.UTC(2026, 10, 23, 22, 40, 0, 500)
  expect(flashbackTimeOf(momentBefore(committed))).toBe('2026-11-23T22:40:00.499999Z')
  expect(flashbackTimeOf(momentBefore(committed + 0.124))).toBe('2026-11-23T22:40:00.500123Z')
  expect(flashbackTimeOf(committed, -210)).toBe('2026-11-23T19:10:00.500-03:30')
  expect(flashbackTimeOf(committed - 500)).toBe('2026-11-23T22:40:00Z')
  expect(FlashbackTime.parse(flashbackTimeOf(momentBefore(committed), 345))).toBe(
    '2026-11-24T04:25:00.499999+05:45',
  )
})
