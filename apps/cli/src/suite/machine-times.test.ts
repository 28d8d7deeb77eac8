import { expect, test } from 'vitest'
import { machineTimes, shareAtWork } from './machine-times'

test('the share at work is of all time that the processors had', () => {
  expect(shareAtWork({ atWork: 100, idle: 100 }, { atWork: 160, idle: 140 })).toBe('60 %')
  expect(shareAtWork({ atWork: 100, idle: 100 }, { atWork: 100, idle: 100 })).toBe('unknown')
})

test('what the machine tells only grows', () => {
  const before = machineTimes()
  const after = machineTimes()
  expect(after.atWork + after.idle).toBeGreaterThanOrEqual(before.atWork + before.idle)
})
