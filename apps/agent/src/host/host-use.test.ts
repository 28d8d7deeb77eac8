import { expect, test } from 'vitest'
import { HostUseMeter, parseCounters, usedBetween } from './host-use'

const stat = (user: number, idle: number) =>
  `cpu  ${user} 0 0 ${idle} 0 0 0 0 ${user} 0\ncpu0 1 0 0 1 0 0 0 0 0 0\ncpu1 1 0 0 1 0 0 0 0 0 0\nintr 1\n`
const disks = (read: number, written: number, busyMs: number) =>
  ` 259       0 nvme0n1 10 0 ${read} 5 20 0 ${written} 7 3 ${busyMs} ${busyMs * 6} 0 0 0 0 9 9\n   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n`
const pressure = (us: number) =>
  `some avg10=32.21 avg60=14.08 avg300=4.73 total=${us}\nfull avg10=7.32 avg60=1.88 avg300=0.95 total=1\n`
const counters = (
  at: number,
  user: number,
  idle: number,
  read = 0,
  written = 0,
  waits = pressure(at * 500),
) => {
  const it = parseCounters(stat(user, idle), disks(read, written, at * 0.75), waits, at)
  if (!it) throw new Error('not read')
  return it
}

test('what the machine used is cores and bytes per second, of its processors and of each device', () => {
  const use = usedBetween(counters(0, 100, 100), counters(2_000, 250, 150, 2_048, 4_096))
  expect(use?.cpuBusy).toBeCloseTo(1.5)
  expect(use?.disks.get('259:0')).toEqual({
    ...{ readBytes: 524_288, writeBytes: 1_048_576 },
    ...{ busy: 0.75, queue: 4.5 },
  })
  expect(use?.disks.get('7:0')).toEqual({ readBytes: 0, writeBytes: 0, busy: 0, queue: 0 })
})

test('how long processes waited for storage is a share of the time, and unknown where it is not counted', () => {
  expect(usedBetween(counters(0, 1, 1), counters(2_000, 2, 2))?.ioWait).toBeCloseTo(0.5)
  expect(usedBetween(counters(0, 1, 1), counters(2_000, 2, 2, 0, 0, ''))?.ioWait).toBeNull()
})

test('counters that went back, or of long ago, tell nothing', () => {
  expect(usedBetween(counters(0, 100, 100), counters(1_000, 50, 200))).toBeNull()
  expect(usedBetween(counters(0, 100, 100), counters(61_000, 200, 200))).toBeNull()
  const use = usedBetween(counters(0, 1, 1, 100, 100), counters(1_000, 2, 2, 50, 200))
  expect(use?.disks.has('259:0')).toBe(false)
  for (const odd of ['', 'cpu 1 2 3\ncpu0 1', 'cpu  a b c d e\ncpu0 1 '])
    expect(parseCounters(odd, '', null, 0)).toBeNull()
})

test('this very machine is measured between two looks, and not anew within a moment', () => {
  const meter = new HostUseMeter()
  const began = performance.now()
  expect(meter.look(began)).toBeNull()
  expect(meter.look(began + 100)).toBeNull()
  let use = null
  // the kernel counts in hundredths of a second
  while (use === null && performance.now() < began + 5_000) use = meter.look(performance.now())
  expect(use?.cpuBusy).toBeGreaterThan(0)
  expect(meter.look(performance.now())).toBe(use)
})
