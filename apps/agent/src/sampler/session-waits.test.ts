import { expect, test } from 'vitest'
import { SessionWaits } from './session-waits'

const none = [0, 0, 0, 0]

test('percentiles are of the waits between two ticks, not of all since the start', () => {
  const waits = new SessionWaits()
  // the first reading is only what the next one is compared with
  expect(waits.between([0, 0, 0, 1_000], 'a')).toBeNull()
  // 98 waits below 2 µs and two below 8 µs
  expect(waits.between([98, 0, 2, 1_000], 'a')).toEqual({ p50: 0.002, p99: 0.008 })
  // of one wait both are its place
  expect(waits.between([98, 1, 2, 1_000], 'a')).toEqual({ p50: 0.004, p99: 0.004 })
  expect(waits.between([98, 1, 2, 1_000], 'a')).toBeNull()
})

test('nothing is told over a start of the engine, nor from what is no histogram', () => {
  const waits = new SessionWaits()
  waits.between(none, 'a')
  expect(waits.between([5, 0, 0, 0], 'b')).toBeNull()
  expect(waits.between([6, 0, 0, 0], 'b')).toEqual({ p50: 0.002, p99: 0.002 })
  // counts that shrink although the engine says it is the same life
  expect(waits.between([1, 9, 0, 0], 'b')).toBeNull()
  for (const said of [null, undefined, 'x', [], [Number.NaN, 1], [-1, 1], Array(65).fill(1)]) {
    expect(waits.between(said, 'b')).toBeNull()
    expect(waits.between([2, 9, 0, 0], 'b')).toBeNull()
  }
})
