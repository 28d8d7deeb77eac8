import { expect, test } from 'vitest'
import { Standstills } from './standstills'
import { keptLog } from './testing/controllers-fixture'

function watched() {
  const clock = { monotonic: 0, wall: 1_000_000 }
  const log = keptLog()
  return { clock, log, standstills: new Standstills(log, () => ({ ...clock })) }
}

test('a process that is at work all the time has been since it began', () => {
  const { clock, log, standstills } = watched()
  for (let i = 0; i < 100; i++) {
    clock.monotonic += 600
    clock.wall += 600
    standstills.now()
  }
  expect(standstills.since()).toEqual({ monotonic: 0, wall: 1_000_000 })
  expect(log.lines).toEqual([])
})

test('a stopped process, a machine that slept and a clock set forward stood still; a clock set back did not', () => {
  const { clock, log, standstills } = watched()
  clock.monotonic += 40_000
  clock.wall += 40_000
  // asked by a loop that woke before the tick
  expect(standstills.since()).toEqual(clock)
  clock.wall += 3_600_000
  expect(standstills.since()).toEqual(clock)
  const before = { ...clock }
  clock.monotonic += 500
  clock.wall -= 86_400_000
  expect(standstills.since()).toEqual(before)
  expect(log.lines.map((l) => [l.event, l.fields])).toEqual([
    ['controller.stood_still', { lastedMs: 40_000 }],
    ['controller.stood_still', { lastedMs: 3_600_000 }],
  ])
})
