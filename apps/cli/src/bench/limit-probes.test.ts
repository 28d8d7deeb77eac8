import { expect, test } from 'vitest'
import { limitError, processorSeconds } from './limit-probes'

test('below its limit a rate is an error only where the device could do more', () => {
  expect(limitError(840, 5_000, 800)).toBeCloseTo(5)
  expect(limitError(760, 5_000, 800)).toBeCloseTo(5)
  expect(limitError(300, 310, 800)).toBe(0)
  expect(limitError(880, 850, 800)).toBeCloseTo(10)
})

test('processor time is that of the children of the shell', () => {
  expect(processorSeconds('1.5\n0m0.01s 0m0.02s\n1m1.25s 0m0.50s\n6.5')).toBeCloseTo(61.75)
})
