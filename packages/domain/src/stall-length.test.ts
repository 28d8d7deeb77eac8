import { expect, test } from 'vitest'
import { StallLength, stallLengthMs } from './stall-length'

test.each([
  ['3s', 3_000],
  ['1500ms', 1_500],
  [' 2 min ', 120_000],
  ['500ms', 500],
  ['60min', 3_600_000],
  ['default', null],
])('%s is a length', (text, ms) => {
  expect(stallLengthMs(StallLength.parse(text))).toBe(ms)
})

test.each(['', '3', '499ms', '61min', '0s', '-1s', '1.5s', '3 hours', '3S', 'Default'])(
  '%j is none',
  (text) => {
    expect(() => StallLength.parse(text)).toThrow('must be a time from 500ms to 60min')
  },
)
