import type { RepairedRecovery } from '@floe/domain'
import { expect, test } from 'vitest'
import { recoveryWithStart } from './protection'

const repaired: RepairedRecovery = {
  kind: 'crash',
  policy: 'checksum',
  startedAt: 1_000.4,
  endedAt: 1_100,
  checked: 7,
  torn: 1,
  repaired: 1,
  bytes: 8_192,
}
const start = (beganAt: number, readyAt: number) => ({ beganAt, readyAt, standby: false })

test('page repair was a part of the start that it lies in', () => {
  expect(recoveryWithStart(repaired, start(990, 1_500))).toEqual({
    ...repaired,
    start: { beganAt: 990, readyAt: 1_500 },
  })
  // the log counts whole milliseconds
  expect(recoveryWithStart({ ...repaired, startedAt: 999.6 }, start(1_000, 1_500))?.start).toBeDefined()
})

test('not of an earlier or a later one', () => {
  expect(recoveryWithStart(repaired, start(100, 900))).toEqual(repaired)
  expect(recoveryWithStart(repaired, start(1_200, 1_500))).toEqual(repaired)
  expect(recoveryWithStart(repaired, null)).toEqual(repaired)
})

test('a start after a crash in which it looked at nothing is a recovery, too; any other start is none', () => {
  expect(recoveryWithStart(null, { ...start(990, 1_500), standby: true })).toMatchObject({
    kind: 'standby',
    policy: 'none',
    startedAt: 990,
    endedAt: null,
    checked: 0,
    start: { beganAt: 990, readyAt: 1_500 },
  })
  expect(recoveryWithStart(null, null)).toBeNull()
})
