import { expect, test } from 'vitest'
import { Heartbeats } from './heartbeats'

const beat = (at: number, serverMs: number, pid = 7) => ({ pid, at: String(at), serverMs })

test('a process that goes on is known to at the second look', () => {
  const beats = new Heartbeats()
  expect(beats.look('1', beat(10, 1_000), 0)).toBeNull()
  expect(beats.look('1', beat(11, 6_000), 5_000)).toBe(true)
  expect(beats.last('1', 7)).toBe(true)
  expect(beats.last('1', 8)).toBeNull()
  expect(beats.last('2', 7)).toBeNull()
})

test('one that stays at the same moment while the clocks go on does nothing, until it goes on', () => {
  const beats = new Heartbeats()
  beats.look('1', beat(10, 1_000), 0)
  beats.look('1', beat(11, 6_000), 5_000)
  expect(beats.look('1', beat(11, 11_000), 10_000)).toBe(true)
  expect(beats.look('1', beat(11, 16_000), 15_000)).toBe(false)
  expect(beats.look('1', beat(11, 21_000), 20_000)).toBe(false)
  expect(beats.look('1', beat(12, 26_000), 25_000)).toBe(true)
})

test('a pause of the machine or of the agent condemns nobody', () => {
  const beats = new Heartbeats()
  beats.look('1', beat(10, 1_000), 0)
  expect(beats.look('1', beat(10, 3_600_000), 3_600_000)).toBeNull()
  expect(beats.look('1', beat(11, 3_605_000), 3_605_000)).toBe(true)
})

test('looks in quick succession tell nothing', () => {
  const beats = new Heartbeats()
  beats.look('1', beat(10, 1_000), 0)
  for (let ms = 100; ms < 1_000; ms += 100) expect(beats.look('1', beat(10, 1_000 + ms), ms)).toBeNull()
})

test('a clock that jumps condemns nobody', () => {
  const beats = new Heartbeats()
  beats.look('1', beat(10, 10_000), 0)
  // forward, while hardly any time has passed; then back
  expect(beats.look('1', beat(10, 99_000_000), 100)).toBeNull()
  expect(beats.look('1', beat(10, 99_000_100), 200)).toBeNull()
  expect(beats.look('1', beat(10, 5_000), 300)).toBeNull()
  expect(beats.look('1', beat(9, 10_000), 5_300)).toBe(true)
})

test('another process, or none, begins anew', () => {
  const beats = new Heartbeats()
  beats.look('1', beat(10, 1_000), 0)
  beats.look('1', beat(10, 6_000), 5_000)
  expect(beats.look('1', beat(10, 11_000, 8), 10_000)).toBeNull()
  expect(beats.look('1', null, 15_000)).toBeNull()
  expect(beats.look('1', beat(10, 20_000, 8), 20_000)).toBeNull()
})
