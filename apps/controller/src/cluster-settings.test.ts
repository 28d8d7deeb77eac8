import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { listSettingChanges, listSettingRevisions, showOperation } from '@floe/db'
import { type ClusterMember, type OperationInput, primaryOf, type SettingChange } from '@floe/domain'
import { cancelOperation, retryOperation, submitOperation } from '@floe/operations/submit'
import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ControllerProcess } from './testing/controller-process'
import { actor } from './testing/controllers-fixture'
import { type LoopbackHostFixture, loopbackHostFixture } from './testing/hosts-fixture'

let fixture: LoopbackHostFixture
let firstId: string
let controller: ControllerProcess

beforeAll(async () => {
  fixture = await loopbackHostFixture()
  controller = fixture.startProcess()
  await fixture.allSeen()
  firstId = await fixture.createInstance('one')
  for (const name of ['one-2', 'one-3']) await fixture.createStandby(firstId, name)
  await fixture.ask(await member('one'), 'create table seen (n int primary key)')
}, 180_000)
afterAll(() => fixture?.remove(), 60_000)

const cluster = () => fixture.clusterOf(firstId)
const member = (name: string) => fixture.memberOf(firstId, name)

/** The same changes for every member, and what one of them gets besides. */
async function changeInput(changes: SettingChange[], besides: Record<string, SettingChange[]> = {}) {
  const { clusterId, members, primaryInstanceId } = await cluster()
  return {
    clusterId,
    instanceId: primaryInstanceId,
    members: members.map((m) => ({
      instanceId: m.instanceId,
      changes: [...changes, ...(besides[m.name] ?? [])],
    })),
    reason: 'a test',
  }
}
const connections = (value: string): SettingChange[] => [{ name: 'max_connections', value }]

/** What every member says itself, the primary first. */
async function shown(name: string): Promise<string[]> {
  const { members } = await cluster()
  return Promise.all(
    members.map(
      async (m) =>
        (await fixture.ask<{ v: string }>(m, `select current_setting('${name}') as v`))[0]?.v ?? '',
    ),
  )
}
const pending = async () =>
  (
    await Promise.all(
      (
        await cluster()
      ).members.map((m) => fixture.ask(m, 'select name from pg_settings where pending_restart')),
    )
  ).flat()

let row = 0
/** A row written now comes to every standby: they stream and replay. */
async function allReplay(): Promise<void> {
  const n = ++row
  await fixture.ask(await member('one'), `insert into seen values (${n})`)
  for (const m of (await cluster()).members.filter((x) => x.memberRole === 'standby'))
    await waitUntil(
      `${m.name} replays`,
      async () => (await fixture.ask(m, `select 1 from seen where n = ${n}`)).length === 1,
      20_000,
    )
  // and so it is stored, which the next change is judged by
  await waitUntil('replay is seen to go on', async () =>
    (await cluster()).members.every((m) => m.replication?.replayPaused === false),
  )
}
/** What no standby may ever have said: that it stopped, or did not start, because a value was too small. */
async function complaints(): Promise<string[]> {
  return (await cluster()).members.flatMap((m) => {
    const directory = join(fixture.directoryOf(m), 'log')
    return readdirSync(directory)
      .filter((f) => f.endsWith('.log'))
      .flatMap((f) => readFileSync(join(directory, f), 'utf8').split('\n'))
      .filter((line) => /insufficient parameter settings|lower setting than on the primary/.test(line))
      .map((line) => `${m.name}: ${line}`)
  })
}

test('raised and lowered across the cluster: in order, confirmed and recorded by each, and replay never stops', async () => {
  const before = (await shown('max_connections'))[0] as string
  const raised = await fixture.carryOut('change-cluster-settings', await changeInput(connections('130')))
  expect(await shown('max_connections')).toEqual(['130', '130', '130'])
  expect(raised.result).toMatchObject({
    members: {
      one: [{ name: 'max_connections', oldValue: before, newValue: '130', pendingRestart: false }],
      'one-3': [{ name: 'max_connections', oldValue: before, newValue: '130', pendingRestart: false }],
    },
  })
  await allReplay()
  const order = (await fixture.logOf(raised.operationId)).split('\n').filter((l) => l.startsWith('restart.'))
  expect(order).toEqual(['restart.one-2: done', 'restart.one-3: done', 'restart.one: done'])

  const lowered = await fixture.carryOut(
    'change-cluster-settings',
    await changeInput([...connections('60'), { name: 'work_mem', value: '7MB' }]),
  )
  expect(await shown('max_connections')).toEqual(['60', '60', '60'])
  expect(await shown('work_mem')).toEqual(['7MB', '7MB', '7MB'])
  expect(
    (await fixture.logOf(lowered.operationId)).split('\n').filter((l) => /^(await|restart)\./.test(l)),
  ).toEqual([
    'restart.one: done',
    'await.one-2: done',
    'restart.one-2: done',
    'await.one-3: done',
    'restart.one-3: done',
  ])
  await allReplay()
  expect(await pending()).toEqual([])
  expect(await complaints()).toEqual([])

  // each member's own history says who, why, and what it was
  for (const m of (await cluster()).members) {
    const [latest] = await listSettingChanges(
      fixture.db.pool,
      { instanceId: m.instanceId },
      { name: 'max_connections' },
    )
    expect(latest).toMatchObject({
      oldValue: '130',
      newValue: '60',
      actorName: actor.name,
      reason: 'a test',
      operationId: lowered.operationId,
    })
    const [revision] = await listSettingRevisions(fixture.db.pool, { instanceId: m.instanceId })
    expect(revision?.managed).toMatchObject({ max_connections: '60', work_mem: '7MB' })
  }

  const again = await fixture.carryOut('change-cluster-settings', await changeInput(connections('60')))
  expect(again.result).toMatchObject({ members: { one: [{ oldValue: '60', newValue: '60' }] } })
  const ofAgain = <T extends { operationId: string | null }>(rows: T[]) =>
    rows.filter((r) => r.operationId === again.operationId)
  for (const { instanceId } of (await cluster()).members) {
    expect(ofAgain(await listSettingChanges(fixture.db.pool, { instanceId }))).toEqual([])
    expect(ofAgain(await listSettingRevisions(fixture.db.pool, { instanceId }))).toEqual([])
  }
}, 120_000)

test('lowered below what a crash would replay: a standby that is killed right after comes back', async () => {
  await fixture.carryOut('change-cluster-settings', await changeInput(connections('90')))
  await fixture.carryOut('change-cluster-settings', await changeInput(connections('50')))
  const standby = await member('one-2')
  const directory = join(fixture.directoryOf(standby), 'pgdata')
  process.kill(Number(readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')[0]), 'SIGKILL')
  await waitUntil('the crash is seen', async () => (await member('one-2')).state === 'crashed', 30_000)
  await fixture.carryOut('start-instance', { instanceId: standby.instanceId })
  await allReplay()
  expect(await complaints()).toEqual([])
}, 120_000)

test('a value that keeps one standby from starting is undone everywhere', async () => {
  const before = await shown('max_connections')
  const history = await listSettingChanges(fixture.db.pool, { clusterId: (await cluster()).clusterId })
  // no check can see that: the timeline is looked for when a standby starts
  const operationId = await fixture.submit(
    'change-cluster-settings',
    await changeInput(connections('140'), { 'one-3': [{ name: 'recovery_target_timeline', value: '99' }] }),
  )
  const operation = await fixture.ended(operationId)
  expect(operation).toMatchObject({ state: 'failed', fault: { code: 'setting.rolled_back' } })
  expect(operation.fault?.message).toBe('member "one-3": the engine did not start with the changed settings')
  expect(operation.fault?.detail).not.toContain('Could not be undone')
  expect(await fixture.logOf(operationId)).not.toContain('restart.one: done')
  expect(await shown('max_connections')).toEqual(before)
  expect(await pending()).toEqual([])
  await allReplay()
  expect(await complaints()).toEqual([])
  // nothing has changed, so nothing is told to have
  expect(await listSettingChanges(fixture.db.pool, { clusterId: (await cluster()).clusterId })).toEqual(
    history,
  )
}, 120_000)

test('a value that an engine refuses changes nothing on any member', async () => {
  const before = await shown('max_connections')
  for (const change of [
    { name: 'max_connections', value: 'many' },
    { name: 'no_such_setting', value: '1' },
    { name: 'max_wal_senders', value: '1' },
  ]) {
    const operationId = await fixture.submit('change-cluster-settings', await changeInput([change]))
    const operation = await fixture.ended(operationId)
    expect([operation.state, operation.fault?.code]).toEqual([
      'failed',
      change.name === 'max_wal_senders'
        ? 'setting.too_few_senders'
        : change.name === 'no_such_setting'
          ? 'setting.unknown'
          : 'setting.invalid_value',
    ])
  }
  expect(await shown('max_connections')).toEqual(before)
}, 60_000)

test('cancelled when the primary has changed and a standby lags: all go back', async () => {
  const before = await shown('max_connections')
  const operationId = await fixture.submit('change-cluster-settings', await changeInput(connections('40')))
  const lagging = await member('one-2')
  await waitUntil('the primary is at it', () => runs(operationId, 'primary'), 60_000, 25)
  await fixture.ask(lagging, 'select pg_wal_replay_pause()')
  await waitUntil('the standby is waited for', () => runs(operationId, 'replayed'), 60_000)
  await waitUntil('it waits', async () => (await shown('max_connections'))[0] === '40', 30_000)
  await cancelOperation(fixture.db.as.web, { operationId, actor })
  await waitUntil(
    'the primary is back',
    async () => (await shown('max_connections').catch(() => []))[0] === before[0],
    60_000,
  )
  await fixture.ask(lagging, 'select pg_wal_replay_resume()')
  expect((await fixture.ended(operationId)).state).toBe('cancelled')
  expect(await shown('max_connections')).toEqual(before)
  await allReplay()
  expect(await complaints()).toEqual([])
}, 180_000)

const runs = async (operationId: string, step: string) => {
  const { rows } = await fixture.db.pool.query<{ state: string }>(
    'SELECT state FROM operation_step WHERE "operationId" = $1 AND name = $2',
    [operationId, step],
  )
  return rows[0]?.state === 'running'
}

test('kill -9 of the controller at each step: another one goes on, and each member is restarted once', async () => {
  const operationId = await fixture.submit('change-cluster-settings', await changeInput(connections('120')))
  const starts = async () =>
    Promise.all(
      (await cluster()).members.map(
        async (m) =>
          (await fixture.ask<{ at: string }>(m, 'select pg_postmaster_start_time()::text as at'))[0]?.at,
      ),
    )
  const before = await starts()
  for (const step of ['check', 'standbys', 'primary', 'observe', 'confirm']) {
    const late = await waitUntil(
      `step ${step} runs`,
      async () => {
        if (await runs(operationId, step)) return 'runs'
        return (await showOperation(fixture.db.pool, operationId))?.endedAt ? 'ended' : null
      },
      60_000,
    )
    if (late === 'ended') break
    await controller.end('SIGKILL')
    controller = fixture.startProcess()
  }
  const operation = await fixture.ended(operationId)
  expect([operation.state, operation.fault]).toEqual(['succeeded', null])
  expect(await shown('max_connections')).toEqual(['120', '120', '120'])
  const after = await starts()
  expect(after.every((at, i) => at !== before[i])).toBe(true)
  await allReplay()
  expect(await complaints()).toEqual([])
  // once each: the agent keeps one task by its key
  const { rows } = await fixture.db.pool.query(
    `SELECT count(*)::int AS n FROM setting_change WHERE "operationId" = $1 GROUP BY "instanceId"`,
    [operationId],
  )
  expect(rows).toEqual([{ n: 1 }, { n: 1 }, { n: 1 }])
}, 240_000)

test('a second operation on any member is answered at once with the first one; a repeated request is the same one', async () => {
  const input = (await changeInput([
    { name: 'work_mem', value: '9MB' },
  ])) as OperationInput<'change-cluster-settings'>
  const request = { kind: 'change-cluster-settings', input, actor, idempotencyKey: 'one-change' } as const
  const first = await submitOperation(fixture.db.as.web, request)
  await expect(
    fixture.submit('change-settings', {
      instanceId: (await member('one-3')).instanceId,
      changes: [{ name: 'work_mem', value: '1MB' }],
    }),
  ).rejects.toMatchObject({ blockingOperationId: first.operationId })
  expect(await submitOperation(fixture.db.as.web, request)).toMatchObject({
    operationId: first.operationId,
    created: false,
  })
  expect((await fixture.ended(first.operationId)).state).toBe('succeeded')
  expect(await shown('work_mem')).toEqual(['9MB', '9MB', '9MB'])
}, 60_000)

test('one member alone cannot have such a setting otherwise; a stopped member is refused by name; a failed change is retried', async () => {
  const standby = await member('one-2')
  await expect(
    fixture.submit('change-settings', { instanceId: standby.instanceId, changes: connections('20') }),
  ).rejects.toMatchObject({ fault: { code: 'setting.of_cluster' } })
  // past the console the standby's own agent knows what its primary asks for
  const refused = await runTask(standby, { kind: 'change-settings', changes: connections('20') })
  expect(refused.fault).toMatchObject({ code: 'setting.below_primary' })

  const held = await shown('max_connections')
  const operationId = await fixture.submit(
    'change-cluster-settings',
    // a smaller one, which the standbys take last: the other setting is tried before
    await changeInput(connections(String(Number(held[0]) - 10)), {
      'one-2': [{ name: 'recovery_target_timeline', value: '98' }],
    }),
  )
  expect((await fixture.ended(operationId)).state).toBe('failed')
  const again = await retryOperation(fixture.db.as.web, { operationId, actor })
  // settings of recovery are not the agent's to put back: the operation does it, and starts the member again
  expect((await fixture.ended(again.operationId)).fault).toMatchObject({
    code: 'instance.not_started',
    message: expect.stringContaining('member "one-2"'),
  })
  expect(await shown('max_connections')).toEqual(held)
  await allReplay()

  await fixture.carryOut('stop-instance', { instanceId: standby.instanceId, mode: 'fast' })
  await expect(
    fixture.submit('change-cluster-settings', await changeInput(connections('110'))),
  ).rejects.toMatchObject({ fault: { code: 'member.not_running', message: 'member "one-2" is stopped' } })
  await fixture.carryOut('start-instance', { instanceId: standby.instanceId })
  await allReplay()
  expect(primaryOf(await cluster())?.name).toBe('one')
}, 180_000)

/** A task straight at the agent, as another console would ask it. */
async function runTask(m: ClusterMember, task: object) {
  const { createAgentClient } = await import('@floe/agent-contract/client')
  const client = createAgentClient(fixture.host(1).home.endpoint('task'))
  const key = { operationId: randomUUID(), step: 'by-hand', attempt: 1 }
  try {
    await client.trpc.task.start.mutate({ key, task: { instanceId: m.instanceId, ...task } as never })
    return await waitUntil('the task ended', async () => {
      const status = await client.trpc.task.check.query({ key, afterLogSeq: 0 })
      return status.endedAt ? status : null
    })
  } finally {
    client.close()
  }
}
