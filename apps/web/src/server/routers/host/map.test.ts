import { randomUUID } from 'node:crypto'
import { insertSamples, insertStalls } from '@floe/db'
import { insertTestInstance } from '@floe/db/testing'
import { type Disk, HostFacts, HostId } from '@floe/domain'
import type { MetricValues } from '@floe/telemetry'
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
let caller: Awaited<ReturnType<ThrowawayConsole['callerOf']>>
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
  caller = await it.callerOf((await it.signedIn('viewer')).headers)
})
afterAll(() => it.close())

const GB = 1024 ** 3
const facts = HostFacts.parse({
  ...{ hostName: 'db-1', operatingSystem: 'Linux', kernel: '6', architecture: 'x86_64', loadAverage1: 1 },
  ...{ cpus: 4, cpuBusy: 3, memoryBytes: 16 * GB, memoryAvailableBytes: 4 * GB, uptimeSeconds: 1 },
  supervision: 'detached',
  instancePorts: { from: 1, to: 2, used: 2 },
  disks: [
    {
      ...{ mount: '/data', device: '/dev/nvme0n1', fileSystem: 'xfs', options: 'rw', nvme: true },
      ...{ sizeBytes: 100 * GB, freeBytes: 40 * GB, disk: 'nvme0n1', readBytes: 1_000, writeBytes: 5_000 },
      holdsInstances: true,
    },
  ],
})

let hostId: HostId
const names = new Map<string, string>()
const make = async (name: string, state: string) => {
  const made = await insertTestInstance(it.database, { name: `${name}-${randomUUID().slice(0, 8)}`, hostId })
  names.set(made.instanceId, name)
  await it.database.pool.query(
    `UPDATE instance SET state = $2, "observedAt" = now(), observed = '{}' WHERE id = $1`,
    [made.instanceId, state],
  )
  return made
}
/** What is of now stays so for a while: a busy machine takes its time until it is looked at. */
const AHEAD_MS = 60_000
const seen = (ageSeconds = -AHEAD_MS / 1_000, now: HostFacts = facts) =>
  it.database.pool.query(
    'UPDATE host SET facts = $2, "observedAt" = now() - make_interval(secs => $3) WHERE id = $1',
    [hostId, JSON.stringify(now), ageSeconds],
  )
const sampled = (instanceId: string, values: MetricValues, at = Date.now() + AHEAD_MS) =>
  insertSamples(it.database.pool, [{ instanceId, samples: [{ seq: 1, at, intervalMs: 1_000, values }] }])
const told = () => caller.host.map({ hostId })
beforeEach(() => {
  hostId = HostId.parse(randomUUID())
})

const busy = {
  process_cpu: 2,
  process_memory: 8 * GB,
  database_size: 30 * GB,
  wal_size: GB,
  process_read_bytes: 400,
  process_write_bytes: 4_000,
}

test('a viewer sees who uses how much now, what is left, and what the limits add up to', async () => {
  const alpha = await make('alpha', 'running')
  const beta = await make('beta', 'stopped')
  const gamma = await make('gamma', 'running')
  await seen()
  await it.database.pool.query('UPDATE instance SET limits = $2 WHERE id = $1', [
    alpha.instanceId,
    JSON.stringify({ cpu: 5, memoryMax: 10 * GB }),
  ])
  await sampled(alpha.instanceId, { ...busy, cpu_throttled: 0.3 })
  // of half a minute ago: not what is now
  await sampled(gamma.instanceId, busy, Date.now() - 30_000)
  const map = await told()
  expect(map.instances.map((i) => [names.get(i.instanceId), i.sampleAt === null])).toEqual([
    ['alpha', false],
    ['beta', true],
    ['gamma', true],
  ])
  const of = (resource: string) => map.resources.find((r) => r.resource === resource)
  expect(of('cpu')).toMatchObject({ used: [2, 0, null], others: 1, left: 1, unknown: 1 })
  expect(of('memory')).toMatchObject({ used: [8 * GB, 0, null], others: 4 * GB, left: 4 * GB })
  expect(of('space')).toMatchObject({ of: '/data', used: [31 * GB, null, null], others: 29 * GB })
  expect(of('writes')).toMatchObject({ of: 'nvme0n1', used: [4_000, 0, null], others: 1_000, left: null })
  expect(map.sums).toMatchObject([
    { resource: 'cpu', limited: 5, size: 4, unlimited: 2, over: true },
    { resource: 'memory', limited: 10 * GB, over: false },
  ])
  expect(map.pressures.map((p) => p.title)).toEqual([`${alpha.name} is held back by its own limit`])
  expect(beta.name).toMatch(/^beta/)
})

test('a stall names the neighbour that read and wrote most while it lasted', async () => {
  const alpha = await make('alpha', 'running')
  const beta = await make('beta', 'running')
  await seen()
  const now = Date.now()
  const at = now - 60_000
  await sampled(alpha.instanceId, { process_read_bytes: 1_000, process_write_bytes: 8_000 }, at)
  await sampled(beta.instanceId, { process_write_bytes: 1_000 }, at)
  const common = {
    waits: [],
    sessions: 2,
    checkpoint: null,
    checkpointerStopped: false,
    checkpointerHangsIn: null,
    device: null,
  }
  const stall = { ...common, cause: 'storage' as const, startedAt: at - 1_000, endedAt: at + 3_000 }
  await insertStalls(it.database.pool, beta.instanceId, [
    { ...stall, seq: 1 },
    // long ago
    { ...stall, seq: 2, startedAt: now - 1_300_000, endedAt: now - 1_200_000 },
  ])
  expect((await told()).pressures).toMatchObject([
    {
      title: `${beta.name} stalled while ${alpha.name} read and wrote most`,
      detail: expect.stringMatching(
        /^Once in the last 10 minutes, for 4\.0 s; it waited for storage\..* 90 %/,
      ),
    },
  ])
  // a host that is not heard of hurts nobody now
  await seen(60)
  expect((await told()).pressures).toEqual([])
})

test('a disk that is busy all the time is told with the instance that reads and writes most, without any stall', async () => {
  const alpha = await make('alpha', 'running')
  const beta = await make('beta', 'running')
  const [disk] = facts.disks
  await seen(undefined, {
    ...facts,
    ioWait: 0.9,
    disks: [{ ...disk, busy: 0.97, queue: 6, readBytes: 1_000, writeBytes: 9_000 } as Disk],
  })
  await sampled(alpha.instanceId, { ...busy, process_write_bytes: 8_000, io_stall: 0.9 })
  await sampled(beta.instanceId, { ...busy, process_cpu: 0, process_write_bytes: 100, io_stall: 0.7 })
  const map = await told()
  expect(map.diskUse).toEqual([
    'Disk nvme0n1 was busy 97 % of the last seconds, with 6.0 requests at once on average.',
    'Some process of the host waited for storage 90 % of the time.',
  ])
  expect(map.pressures.find((p) => p.title.startsWith('Disk'))).toMatchObject({
    title: `Disk nvme0n1 is saturated, mostly by ${alpha.name}`,
    detail: expect.stringContaining(`other instances waited: ${beta.name} 70 % of the time`),
  })
  // what was so a minute ago hurts nobody now
  await seen(60)
  expect(await told()).toMatchObject({ diskUse: [], pressures: [] })
})

test('a host that was never heard of has no map, and one that does not exist is said so', async () => {
  await make('alpha', 'running')
  expect(await told()).toMatchObject({ observedAt: null, resources: [], sums: [], pressures: [] })
  hostId = HostId.parse(randomUUID())
  await expect(told()).rejects.toThrow('does not exist')
})
