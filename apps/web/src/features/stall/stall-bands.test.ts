import { expect, test } from 'vitest'
import { stallBands } from './stall-bands'

test('a stall is a band from its start to its end that says what it waited for', () => {
  const stall = { seq: 7, reason: 'a device at its limit (nvme0n1)', startedAt: 1_000, endedAt: 4_500 }
  expect(stallBands([stall])).toEqual([
    {
      key: 'stall-7',
      phase: 'stall',
      from: 1_000,
      to: 4_500,
      label: expect.stringMatching(/^Stall of 3\.5 s: waited for a device at its limit \(nvme0n1\)$/),
    },
  ])
})

test('one that lasts is a band as far as it was seen', () => {
  const lasting = { reason: 'a lock', startedAt: 1_000, endedAt: 4_500 }
  expect(stallBands([], lasting)).toEqual([
    { key: 'stall', phase: 'stall', from: 1_000, to: 4_500, label: 'Stall: waits for a lock' },
  ])
})
