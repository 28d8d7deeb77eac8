import { expect, test } from 'vitest'
import { HostFacts } from './host'
import {
  disksSeen,
  diskUseWords,
  formatUse,
  hostMap,
  hostPressures,
  hostResources,
  limitWords,
  scaleOf,
  unknownUse,
} from './host-map'
import { noLimits } from './instance-limits'

const GB = 1024 ** 3
const facts = HostFacts.parse({
  ...{ hostName: 'db-1', operatingSystem: 'Linux', kernel: '6', architecture: 'x86_64', loadAverage1: 1 },
  ...{ cpus: 4, cpuBusy: 3, memoryBytes: 16 * GB, memoryAvailableBytes: 4 * GB, uptimeSeconds: 1 },
  supervision: 'detached',
  instancePorts: { from: 1, to: 2, used: 2 },
  disks: [
    {
      ...{ mount: '/', device: '/dev/vda1', fileSystem: 'ext4', options: 'rw', nvme: false },
      ...{ sizeBytes: 10 * GB, freeBytes: GB },
    },
    {
      ...{ mount: '/data', device: '/dev/nvme0n1p1', fileSystem: 'xfs', options: 'rw', nvme: true },
      ...{ sizeBytes: 100 * GB, freeBytes: 40 * GB, disk: 'nvme0n1', readBytes: 1_000, writeBytes: 5_000 },
      holdsInstances: true,
    },
  ],
})
const alpha = { cpu: 2, memory: 8 * GB, space: 30 * GB, reads: 400, writes: 4_000 }
const beta = { cpu: 0.5, memory: 2 * GB, space: 10 * GB, reads: 100, writes: 500 }
const of = (map: ReturnType<typeof hostMap>, resource: string) => map.find((m) => m.resource === resource)

test('what instances use, everything else, and what is left add up to all there is', () => {
  const map = hostMap(facts, [alpha, beta])
  expect(map.map((m) => m.resource)).toEqual([...hostResources])
  expect(of(map, 'cpu')).toMatchObject({ size: 4, used: [2, 0.5], others: 0.5, left: 1, unknown: 0 })
  expect(of(map, 'memory')).toMatchObject({ size: 16 * GB, others: 2 * GB, left: 4 * GB })
  expect(of(map, 'space')).toMatchObject({ of: '/data', size: 100 * GB, others: 20 * GB, left: 40 * GB })
  expect(of(map, 'reads')).toMatchObject({ of: 'nvme0n1', size: null, others: 500, left: null })
  for (const { size, used, others, left, ...m } of map)
    if (size !== null)
      expect(used.reduce<number>((a, b) => a + (b ?? 0), 0) + (others ?? 0) + (left ?? 0), m.resource).toBe(
        size,
      )
})

test('what is not known is not 0, and what it uses is among everything else', () => {
  const map = hostMap(facts, [alpha, unknownUse])
  expect(of(map, 'cpu')).toMatchObject({ used: [2, null], others: 1, left: 1, unknown: 1 })
  // an agent of an earlier version
  const older = hostMap({ ...facts, cpuBusy: undefined, disks: facts.disks.slice(0, 1) }, [beta])
  expect(of(older, 'cpu')).toMatchObject({ size: 4, used: [0.5], others: null, left: null })
  expect(of(older, 'space')).toMatchObject({ of: '/', size: 10 * GB, others: 0, left: 0 })
  expect(of(older, 'writes')).toMatchObject({ of: '/dev/vda1', size: null, others: null })
  expect(of(hostMap({ ...facts, disks: [] }, []), 'space')).toMatchObject({
    of: null,
    size: null,
    left: null,
  })
})

test('instances that together come to more than the host leave nothing else, and the bar is as long as they are', () => {
  const cpu = of(hostMap(facts, [alpha, { ...beta, cpu: 3 }]), 'cpu')
  expect(cpu).toMatchObject({ others: 0, left: 0 })
  expect(cpu && scaleOf(cpu)).toBe(5)
})

test('values are told with their unit', () => {
  expect(['cpu', 'memory', 'writes'].map((r) => formatUse(r as 'cpu', r === 'cpu' ? 1.234 : 2048))).toEqual([
    '1.23 cores',
    '2 kB',
    '2 kB/s',
  ])
  expect(formatUse('space', null)).toBe('–')
})

test('what limits an instance is told beside what it uses, requests as well as bytes', () => {
  const limits = { ...noLimits, cpu: 0.7, memoryHigh: 3 * GB, memoryMax: 4 * GB, dataWriteIops: 800 }
  expect(hostResources.map((resource) => limitWords(resource, limits))).toEqual([
    'limit 0.7 cores',
    'limit 4 GB, high 3 GB',
    null,
    null,
    'limit 800 IOPS',
  ])
  expect(limitWords('reads', { ...limits, dataReadBytes: 50 * 1024 ** 2, dataReadIops: 100 })).toBe(
    'limit 50 MB/s, 100 IOPS',
  )
})

const instances = [
  { name: 'alpha', heldBack: null, ioWait: 0.95, limits: noLimits },
  { name: 'beta', heldBack: 0, ioWait: 0.6, limits: { ...noLimits, dataWriteIops: 800 } },
]
const pressures = (o: Partial<Parameters<typeof hostPressures>[0]>) =>
  hostPressures({ map: [], instances, disks: [], ioWait: null, stalls: [], ...o })

test('what is used up is said with who uses most of it, and nothing where enough is left', () => {
  expect(pressures({ map: hostMap(facts, [alpha, beta]) })).toEqual([])
  const full = { ...facts, cpuBusy: 3.95, memoryAvailableBytes: 0.5 * GB }
  const [cpu, memory] = pressures({ map: hostMap(full, [{ ...alpha, memory: GB }, beta]) })
  expect(cpu).toMatchObject({
    title: 'CPU is used up',
    detail: '0.05 cores of 4.00 cores are left. Most of it is alpha’s: 2.00 cores.',
    hint: expect.stringContaining('./floe instance limit alpha --cpu CORES'),
  })
  expect(memory).toMatchObject({ detail: expect.stringContaining('no instance of Floe'), hint: null })
})

test('a stall names the neighbour that read and wrote most meanwhile, where it waited for what they share', () => {
  const stall = { name: 'beta', startedAt: 0, endedAt: 4_000, reason: 'storage', shared: true, most: null }
  const alphaDid = { name: 'alpha', share: 0.92 }
  expect(
    pressures({
      stalls: [
        { ...stall, endedAt: 1_000 },
        { ...stall, most: alphaDid },
      ],
    }),
  ).toEqual([
    {
      title: 'beta stalled while alpha read and wrote most',
      detail:
        '2 times in the last 10 minutes, for at most 4.0 s; it waited for storage. Meanwhile alpha did 92 % of what the instances of this host read and wrote.',
      hint: 'Limit alpha with "./floe instance limit alpha --data-write-iops N".',
    },
  ])
  for (const mild of [
    { ...stall, most: { name: 'beta', share: 0.9 } },
    { ...stall, most: { name: 'alpha', share: 0.4 } },
    { ...stall, shared: false, reason: 'a lock', most: alphaDid },
  ])
    expect(pressures({ stalls: [mild] })).toMatchObject([{ title: 'beta stalled', hint: null }])
})

test('who is held back by its own limit is hurt by nobody else', () => {
  const held = { name: 'beta', heldBack: 0.4, ioWait: null, limits: { ...noLimits, cpu: 0.5 } }
  expect(pressures({ instances: [held] })).toMatchObject([
    { title: 'beta is held back by its own limit', detail: expect.stringContaining('its limit of 0.5') },
  ])
})

test('a disk that is busy all the time is told with who reads and writes most and who waits for it', () => {
  const map = hostMap(facts, [alpha, beta])
  const disk = { name: 'nvme0n1', busy: 0.98, queue: 5.25, holdsInstances: true }
  expect(pressures({ map, disks: [disk], ioWait: 0.8 })).toEqual([
    {
      title: 'Disk nvme0n1 is saturated, mostly by alpha',
      detail:
        'It was busy 98 % of the last seconds, with 5.3 requests at once on average. Some process of the host waited for storage 80 % of the time. Sessions of other instances waited for it or at limits of their own: beta 60 % of the time. alpha did 73 % of the reads and writes, in bytes.',
      hint: 'Limit alpha with "./floe instance limit alpha --data-write-iops N --data-read-iops N".',
    },
  ])
  const limited = instances.map((i) => ({ ...i, limits: noLimits }))
  expect(pressures({ map, disks: [disk], ioWait: 0.8, instances: limited })[0]?.detail).toContain(
    'Sessions of other instances waited: beta 60 %',
  )
  // nobody waits for it; or less is to be done than it can
  expect(pressures({ map, disks: [disk], ioWait: 0.1 })).toEqual([])
  expect(pressures({ map, disks: [{ ...disk, busy: 0.5 }], ioWait: 0.8 })).toEqual([])
  // a kernel that does not count waits: by the requests at once
  expect(pressures({ map, disks: [disk] })).toHaveLength(1)
  expect(pressures({ map, disks: [{ ...disk, queue: 1 }] })).toEqual([])
  const idle = { ...unknownUse, reads: 0, writes: 0 }
  expect(
    pressures({ map: hostMap({ ...facts, cpuBusy: 3 }, [idle]), disks: [disk], ioWait: 0.8 }),
  ).toMatchObject([
    {
      title: 'Disk nvme0n1 is saturated',
      detail: expect.stringContaining('no instance of Floe'),
      hint: null,
    },
  ])
  // what instances do to another disk is not known
  const other = { ...disk, name: 'sdb', holdsInstances: false }
  expect(pressures({ map, disks: [other], ioWait: 0.8 })).toMatchObject([{ hint: null }])
})

test('of a disk with several file systems is told once how busy it is, and nothing where that is not known', () => {
  const [root, data] = facts.disks
  if (!root || !data) throw new Error('two disks')
  const busy = { ...data, busy: 0.5, queue: 1 }
  expect(disksSeen({ disks: [root, busy, { ...busy, mount: '/wal', holdsInstances: false }] })).toEqual([
    { name: 'nvme0n1', busy: 0.5, queue: 1, holdsInstances: true },
  ])
  expect(disksSeen({ disks: [root, data] })).toEqual([])
  const seen = disksSeen({ disks: [busy] })
  expect(diskUseWords(seen, 0.25)).toEqual([
    'Disk nvme0n1 was busy 50 % of the last seconds, with 1.0 requests at once on average.',
    'Some process of the host waited for storage 25 % of the time.',
  ])
  expect(diskUseWords(seen, null)).toHaveLength(1)
})
