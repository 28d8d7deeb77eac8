import { expect, test } from 'vitest'
import { limitError, parseRequests, processorSeconds } from './limit-probes'

test('below its limit a rate is an error only where the device could do more', () => {
  expect(limitError(840, 5_000, 800)).toBeCloseTo(5)
  expect(limitError(760, 5_000, 800)).toBeCloseTo(5)
  expect(limitError(300, 310, 800)).toBe(0)
  expect(limitError(880, 850, 800)).toBeCloseTo(10)
})

test('processor time is that of the children of the shell', () => {
  expect(processorSeconds('1.5\n0m0.01s 0m0.02s\n1m1.25s 0m0.50s\n6.5')).toBeCloseTo(61.75)
})

test('requests are those of one device, on cgroup v1 and v2', () => {
  const v1 = '7:10 Read 1\n7:1 Read 12\n7:1 Write 34\n7:1 Sync 46\nTotal 47\n'
  const v2 = '7:10 rbytes=1 wbytes=2 rios=3 wios=4\n7:1 rbytes=5 wbytes=6 rios=12 wios=34 dbytes=0 dios=0\n'
  for (const text of [v1, v2]) expect(parseRequests(text, '7:1')).toEqual({ reads: 12, writes: 34 })
  expect(parseRequests(v1, '7:0')).toEqual({ reads: 0, writes: 0 })
})
