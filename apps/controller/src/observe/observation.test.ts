import { randomUUID } from 'node:crypto'
import {
  listCheckpoints,
  listIncidents,
  listStalls,
  newestSeq,
  readSamplesAfter,
  showHost,
  showInstance,
} from '@floe/db'
import { incidentKinds } from '@floe/domain'
import type { Sample } from '@floe/telemetry'
import { waitUntil } from '@floe/testkit'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import { controllersFixture, keptLog } from '../testing/controllers-fixture'
import { type FakeAgent, replication, standbySeen } from '../testing/fake-agent'

let fixture: Awaited<ReturnType<typeof controllersFixture>>
beforeEach(async () => {
  fixture = await controllersFixture(inject('engineConnectionString'))
})
afterEach(() => fixture.remove())

/** An instance that was created long ago and that its agent reports as running. */
async function running(host: FakeAgent, name: string): Promise<string> {
  const instanceId = randomUUID()
  await fixture.db.pool.query(
    `INSERT INTO instance (id, name, "hostId", intent) VALUES ($1, $2, $3, 'running')`,
    [instanceId, name, host.hostId],
  )
  await fixture.db.pool.query(
    `INSERT INTO operation (id, kind, state, input, "instanceId", actor, "actorName", "endedAt")
     VALUES (gen_random_uuid(), 'create-instance', 'succeeded', '{}', $1, 't', 't', now())`,
    [instanceId],
  )
  host.show(instanceId, name, 'running', 77)
  return instanceId
}

const now = Date.now()
const samples = (from: number, to: number): Sample[] =>
  Array.from({ length: to - from }, (_, i) => ({
    seq: from + i,
    at: now - 3_000_000 + (from + i) * 1_000,
    intervalMs: 1_000,
    values: { tps: from + i },
  }))
const stateOf = async (instanceId: string) => (await showInstance(fixture.db.pool, instanceId))?.state
const openKeys = async () => (await listIncidents(fixture.db.pool)).map((i) => i.key)

test('a report becomes what is known of host and instances, and a move is told with its reason', async () => {
  const id = await running(fixture.host, 'one')
  const log = keptLog()
  fixture.start(undefined, log)
  await waitUntil('it is seen', async () => (await stateOf(id)) === 'running')
  expect(await showHost(fixture.db.pool, fixture.host.hostId)).toMatchObject({
    state: 'online',
    agentVersion: 'double',
    facts: { cpus: 2 },
    fault: null,
  })
  fixture.host.show(id, 'one', 'crashed')
  await waitUntil('it is seen crashed', async () => (await stateOf(id)) === 'crashed', 1_500)
  await waitUntil('an incident is open', async () => (await openKeys()).includes(`instance-crashed:${id}`))
  fixture.host.show(id, 'one', 'running', 78)
  await waitUntil('the incident is closed', async () => (await openKeys()).length === 0)
  expect(await listIncidents(fixture.db.pool, { state: 'closed' })).toMatchObject([
    { closedBecause: 'The instance is no longer reported as crashed.' },
  ])
  expect(log.lines).toContainEqual({
    level: 'info',
    event: 'instance.moved',
    fields: expect.objectContaining({
      from: 'running',
      to: 'crashed',
      because: expect.stringContaining('ended unexpectedly'),
    }),
  })
})

test('what is wrong with replication opens incidents, each of which closes when that is over', async () => {
  const id = await running(fixture.host, 'one')
  const say = (role: 'primary' | 'standby', said: Parameters<typeof replication>[0]) => {
    const instance = fixture.host.instances.get(id)
    if (instance) Object.assign(instance, { role, replication: replication(said) })
    fixture.host.changed()
  }
  const memberRole = (role: string) =>
    fixture.db.pool.query('UPDATE instance SET "memberRole" = $2 WHERE id = $1', [id, role])
  const unused = { name: 'floe_two', active: false, restartLsn: null, walStatus: 'extended' }
  const open = (what: string, ...keys: string[]) =>
    waitUntil(
      what,
      async () => JSON.stringify((await openKeys()).sort()) === JSON.stringify(keys.sort()),
      // commits that wait are told once it has lasted
      (incidentKinds['commits-wait'].graceMs ?? 0) + 10_000,
    )
  fixture.start()
  await waitUntil('it is seen', async () => (await stateOf(id)) === 'running')
  await memberRole('standby')
  say('primary', {
    synchronousStandbyNames: 'ANY 1 ("two")',
    slots: [{ ...unused, retainedBytes: 2 ** 31 }],
  })
  const all = [`commits-wait:${id}`, `second-primary:${id}`, `slot-unused:${id}:floe_two`]
  await open('three incidents are open', ...all)
  say('standby', { slots: [{ ...unused, retainedBytes: 2 ** 31 }] })
  await open('of a standby only the slot is left', `slot-unused:${id}:floe_two`)
  await memberRole('primary')
  say('primary', {
    synchronousStandbyNames: 'ANY 1 ("two")',
    standbys: [standbySeen('two', 'quorum')],
    slots: [{ ...unused, active: true, retainedBytes: 2 ** 31 }],
  })
  await open('none is open')
  const closed = await listIncidents(fixture.db.pool, { state: 'closed' })
  expect(closed.map((i) => i.key).sort()).toEqual(all.sort())
})

test('a floor that is turned on in a cluster in which nothing else changes is recorded once it counts', async () => {
  const { pool } = fixture.db
  const id = await running(fixture.host, 'one')
  /** Waits until the controller has taken in a report that says so. */
  const say = async (said: Parameters<typeof replication>[0], pid: number) => {
    fixture.host.show(id, 'one', 'running', pid)
    const instance = fixture.host.instances.get(id)
    if (instance)
      Object.assign(instance, {
        role: 'primary',
        replication: replication({ ancestors: [], commitModes: [], ...said }),
      })
    fixture.host.changed()
    await waitUntil('it is taken in', async () => (await showInstance(pool, id))?.postmasterPid === pid)
  }
  const floor = async () =>
    (await pool.query<{ floor: boolean }>(`SELECT (holdings->>'floor')::boolean AS floor FROM cluster`))
      .rows[0]?.floor
  fixture.start()
  // what is in force before counts, and the controller asks no more about it
  for (const pid of [100, 101, 102, 103]) await say({ commitFloor: 'off' }, pid)
  expect(await floor()).toBe(false)
  await say({ commitFloor: 'on' }, 104)
  await say({ commitFloor: 'on' }, 105)
  await waitUntil('the floor counts', floor, 10_000)
  await say({ commitFloor: 'off' }, 106)
  await waitUntil('it does no more', async () => (await floor()) === false, 10_000)
})

test('an instance its agent does not name any more is unknown, with the reason, until it is named again', async () => {
  const id = await running(fixture.host, 'one')
  fixture.start()
  await waitUntil('it is seen', async () => (await stateOf(id)) === 'running')
  fixture.host.instances.delete(id)
  fixture.host.changed()
  await waitUntil('it is unknown', async () => (await stateOf(id)) === 'unknown')
  expect((await showInstance(fixture.db.pool, id))?.because).toContain('no longer knows it')
  await waitUntil('an incident is open', async () => (await openKeys()).includes(`instance-missing:${id}`))
  // what is shown of it is as old as the last report that named it
  const seenAt = async () => (await showInstance(fixture.db.pool, id))?.observedAt
  const last = await seenAt()
  fixture.host.changed()
  await waitUntil('its host is seen later', async () => {
    const { rows } = await fixture.db.pool.query(`SELECT max("observedAt") AS at FROM host`)
    return rows[0].at > (last as Date)
  })
  expect(await seenAt()).toEqual(last)
  fixture.host.show(id, 'one', 'running')
  await waitUntil('it is seen again', async () => (await stateOf(id)) === 'running')
  await waitUntil('the incident is closed', async () => (await openKeys()).length === 0)
})

test('every sample, checkpoint and stall of an agent is stored once: what it kept, what comes, and after it was away', async () => {
  const id = await running(fixture.host, 'one')
  fixture.host.samples.set(id, samples(0, 1_500))
  fixture.start()
  fixture.start()
  await waitUntil('what it kept is stored', async () => (await newestSeq(fixture.db.pool, id)) === 1_499)
  await fixture.host.close()
  fixture.host.samples.set(id, samples(500, 1_600))
  fixture.host.checkpoints.set(
    id,
    [1, 2, 3].map((seq) => ({
      seq,
      kind: 'checkpoint',
      reasons: ['time'],
      startedAt: null,
      completedAt: now + seq,
      buffersWritten: seq,
      buffersPercent: 0.1,
      slruBuffersWritten: 0,
      walFilesAdded: 0,
      walFilesRemoved: 0,
      walFilesRecycled: 0,
      writeMs: 1.5,
      syncMs: 2.5,
      totalMs: 4,
      syncFiles: 1,
      longestSyncMs: 1,
      averageSyncMs: 1,
      distanceBytes: 1024,
      estimateBytes: 2048,
      lsn: '0/1',
      redoLsn: '0/1',
    })),
  )
  const stall = {
    seq: now,
    startedAt: now,
    endedAt: now + 2_000,
    cause: 'lock' as const,
    waits: [{ type: 'Lock', event: 'relation', count: 6 }],
    sessions: 3,
    checkpoint: null,
    checkpointerStopped: false,
    checkpointerHangsIn: null,
    device: null,
  }
  fixture.host.stalls.set(id, [stall, { ...stall, seq: now + 1, cause: 'storage' }])
  await fixture.reopen(fixture.host)
  await waitUntil('the rest is stored', async () => (await newestSeq(fixture.db.pool, id)) === 1_599)
  const stored = await readSamplesAfter(fixture.db.pool, { instanceId: id, afterSeq: -1 })
  expect(stored.map((s) => s.seq)).toEqual(Array.from({ length: 1_600 }, (_, i) => i))
  await waitUntil(
    'the checkpoints are stored',
    async () => (await listCheckpoints(fixture.db.pool, { instanceId: id })).length === 3,
  )
  expect((await listCheckpoints(fixture.db.pool, { instanceId: id }))[0]).toMatchObject({
    seq: 3,
    completedAt: now + 3,
    writeMs: 1.5,
    reasons: ['time'],
    startedAt: null,
  })
  await waitUntil(
    'the stalls are stored',
    async () => (await listStalls(fixture.db.pool, { instanceId: id })).length === 2,
  )
  expect(await listStalls(fixture.db.pool, { instanceId: id })).toEqual([
    { ...stall, seq: now + 1, cause: 'storage' },
    stall,
  ])
})

test('a slow host and a dead one delay no other', async () => {
  const slow = await fixture.addHost()
  const dead = await fixture.addHost()
  slow.delayMs = 2_500
  await dead.close()
  await running(slow, 'slow')
  await running(dead, 'dead')
  const id = await running(fixture.host, 'quick')
  fixture.start()
  await waitUntil('it is seen', async () => (await stateOf(id)) === 'running', 3_000)
  const seenAt = Date.now()
  for (let seq = 1; seq <= 3; seq++) {
    fixture.host.samples.set(id, samples(0, seq))
    await waitUntil(
      `sample ${seq} is stored`,
      async () => (await newestSeq(fixture.db.pool, id)) === seq - 1,
      3_000,
    )
  }
  expect(Date.now() - seenAt).toBeLessThan(9_000)
  expect(await showHost(fixture.db.pool, dead.hostId)).toMatchObject({
    state: 'unknown',
    fault: { code: 'agent.unreachable' },
  })
})

test('another host’s agent at the address is refused', async () => {
  const impostor = await fixture.addHost()
  await fixture.db.pool.query('UPDATE host SET "agentUrl" = $2 WHERE id = $1', [
    impostor.hostId,
    fixture.host.url,
  ])
  fixture.start()
  await waitUntil(
    'it says so',
    async () => (await showHost(fixture.db.pool, impostor.hostId))?.fault?.code === 'agent.wrong_host',
  )
  expect((await showHost(fixture.db.pool, impostor.hostId))?.observedAt).toBeNull()
})

test('two controllers: one observes a host, and when it stops the other does at once', async () => {
  const id = await running(fixture.host, 'one')
  const first = fixture.start()
  await waitUntil('it is seen', async () => (await stateOf(id)) === 'running')
  fixture.start()
  const owner = async () =>
    (
      await fixture.db.pool.query(
        `SELECT owner FROM lease WHERE name = $1 AND "expiresAt" > clock_timestamp()`,
        [`observe:${fixture.host.hostId}`],
      )
    ).rows[0]?.owner
  expect(await owner()).toBe(first.owner)
  await first.stop()
  await waitUntil(
    'the other has it',
    async () => {
      const name = await owner()
      return name && name !== first.owner
    },
    3_000,
  )
  fixture.host.show(id, 'one', 'stopped')
  await waitUntil('it is seen stopped', async () => (await stateOf(id)) === 'stopped')
})

test('an order to fence is carried out once on its timeline, and is an incident where it does not fit', async () => {
  const id = await running(fixture.host, 'one')
  const order = (timeline: number | null) =>
    fixture.db.pool.query(
      `UPDATE instance SET "memberRole" = 'fenced', "fenceOrderedAt" = clock_timestamp(), "fenceTimeline" = $2 WHERE id = $1`,
      [id, timeline],
    )
  const fences = async () =>
    (
      await fixture.db.pool.query<{ state: string; timeline: number | null }>(
        `SELECT state, (input->>'timeline')::int AS timeline FROM operation
          WHERE "instanceId" = $1 AND kind = 'fence-instance'`,
        [id],
      )
    ).rows
  const waits = `fence-waits:${id}`
  const told = (open: boolean) =>
    waitUntil(`the incident is ${open ? 'open' : 'closed'}`, async () => {
      fixture.host.changed()
      return (await openKeys()).includes(waits) === open
    })
  fixture.host.show(id, 'one', 'running', 77)
  const instance = fixture.host.instances.get(id)
  if (instance) Object.assign(instance, { timeline: 7 })
  fixture.start()
  await waitUntil('it is seen', async () => (await stateOf(id)) === 'running')
  // of an earlier version, and of a control database that was restored from before
  await order(null)
  await told(true)
  await order(6)
  await told(true)
  expect(await fences()).toEqual([])
  // its agent knows better than its report: that is heard once
  const refusal = { code: 'fence.newer_timeline', message: 'not the one', detail: 'It is on timeline 8.' }
  fixture.host.failing.set('fence-instance', refusal)
  await order(7)
  await told(false)
  await waitUntil('it is refused', async () => (await fences())[0]?.state === 'failed')
  await told(true)
  expect((await listIncidents(fixture.db.pool)).find((i) => i.key === waits)?.detail).toBe(
    'It is on timeline 8.',
  )
  expect(await fences()).toEqual([{ state: 'failed', timeline: 7 }])
  fixture.host.failing.clear()
  await order(7)
  await waitUntil('it is fenced', async () => (await fences()).some((o) => o.state === 'succeeded'))
  await told(false)
})

test('a fence that failed is ordered again, and no more once it has succeeded', async () => {
  const id = await running(fixture.host, 'one')
  const instance = fixture.host.instances.get(id)
  if (instance) Object.assign(instance, { timeline: 7 })
  fixture.host.failing.set('fence-instance', { code: 'fence.no_room', message: 'no room' })
  fixture.start(undefined, undefined, { checksHosts: false, fenceAgainMs: 200 })
  await waitUntil('it is seen', async () => (await stateOf(id)) === 'running')
  await fixture.db.pool.query(
    `UPDATE instance SET "memberRole" = 'fenced', "fenceOrderedAt" = clock_timestamp(), "fenceTimeline" = 7 WHERE id = $1`,
    [id],
  )
  const fences = async (state: string) => {
    fixture.host.changed()
    const { rows } = await fixture.db.pool.query(
      `SELECT 1 FROM operation WHERE "instanceId" = $1 AND kind = 'fence-instance' AND state = $2`,
      [id, state],
    )
    return rows.length
  }
  await waitUntil('it has failed twice', async () => (await fences('failed')) >= 2)
  fixture.host.failing.clear()
  await waitUntil('it is fenced', async () => (await fences('succeeded')) > 0)
  const { rows } = await fixture.db.pool.query('SELECT "fenceOrderedAt" FROM instance WHERE id = $1', [id])
  expect(rows).toEqual([{ fenceOrderedAt: null }])
})
