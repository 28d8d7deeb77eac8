import { InstanceLimits, limitNames } from '@floe/domain'
import { expect, test } from 'vitest'
import type { GroupUse } from '../host/limits/driver'
import { addLimits, busyOfDevices } from './limit-reading'

const data = { number: '259:0', name: 'nvme0n1' }
const wal = { number: '259:5', name: 'nvme1n1' }
const of = (n: number) => ({ reads: n, writes: n + 1, readBytes: n + 2, writeBytes: n + 3 })
const use: GroupUse = {
  cpuSeconds: 9,
  cpuThrottledSeconds: 0.5,
  memoryBytes: 300,
  memoryHeldBytes: 150,
  outOfMemoryKills: 0,
  writeBackBytes: 65,
  ioWaitSeconds: 1.5,
  memoryWaitSeconds: 0.25,
  devices: new Map([
    [data.number, of(10)],
    [wal.number, of(20)],
  ]),
}
// each has a value of its own
const inForce = InstanceLimits.parse(Object.fromEntries(limitNames.map((name, i) => [name, 1_000 + i])))
function read(devices: Parameters<typeof addLimits>[1]['devices'], more: Partial<GroupUse> = {}) {
  const reading = { counters: {} as Record<string, number>, gauges: {} as Record<string, number> }
  addLimits(reading as never, { use: { ...use, ...more }, inForce, devices })
  return reading
}

test('every limit is told, with what is used of it', () => {
  const { counters, gauges } = read({ data, wal })
  expect(Object.values(gauges).sort()).toEqual([...Object.values(inForce), 150, 65].sort())
  expect(counters).toEqual({
    cpu_throttled: 0.5,
    io_stall: 1.5,
    memory_stall: 0.25,
    ...{
      data_device_reads: 10,
      data_device_writes: 11,
      data_device_read_bytes: 12,
      data_device_write_bytes: 13,
    },
    ...{ wal_device_reads: 20, wal_device_writes: 21, wal_device_read_bytes: 22, wal_device_write_bytes: 23 },
  })
})

test('WAL on the device of the data is no device of its own, and what is not known is absent', () => {
  const names = ({ counters }: ReturnType<typeof read>) =>
    Object.keys(counters).filter((n) => n.startsWith('wal'))
  expect(names(read({ data, wal: data }))).toEqual([])
  expect(names(read({ data, wal: null }))).toEqual([])
  const { counters, gauges } = read(
    { data: null, wal: null },
    { memoryWaitSeconds: null, memoryHeldBytes: null },
  )
  expect(counters).toEqual({ cpu_throttled: 0.5, io_stall: 1.5 })
  expect(gauges).not.toHaveProperty('memory_held')
})

test('how long its devices had something to do counts each once, and is unknown where one does not tell', () => {
  const busy = new Map([
    [data.number, 200],
    [wal.number, 30],
  ])
  const of = (devices: Parameters<typeof busyOfDevices>[0]['devices']) =>
    busyOfDevices({ devices }, (number) => busy.get(number) ?? null)
  expect(of({ data, wal })).toBe(230)
  expect(of({ data, wal: data })).toBe(200)
  expect(of({ data, wal: data, tablespaces: [{ number: '7:0', name: 'loop0' }] })).toBeNull()
  expect(of({ data: null, wal: null })).toBeNull()
})
