import { randomUUID } from 'node:crypto'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskInput } from '@floe/agent-contract'
import { createAgentClient } from '@floe/agent-contract/client'
import { scramVerifier } from '@floe/authority/scram-verifier'
import {
  askHostCheck,
  askSettingCheck,
  inTransaction,
  listCheckpoints,
  listIncidents,
  listInstances,
  listSettingChanges,
  readSamples,
  readSamplesAfter,
  readSettingCheck,
  type SettingCheckAnswer,
  type SettingCheckTarget,
  showHostCheck,
  showInstance,
} from '@floe/db'
import { InstanceId, InstanceName } from '@floe/domain'
import { type ThrowawayAgent, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { actor } from './testing/controllers-fixture'
import { type LoopbackHostFixture, loopbackHostFixture } from './testing/hosts-fixture'

let fixture: LoopbackHostFixture
let agent: ThrowawayAgent
let controller: Awaited<ReturnType<LoopbackHostFixture['start']>>
const instanceId = randomUUID()

beforeAll(async () => {
  fixture = await loopbackHostFixture()
  agent = fixture.host(1).agent
  controller = await fixture.start()
})
afterAll(() => fixture?.remove())

const ask = async <T>(statement: string) =>
  fixture.ask<T>(await showInstance(fixture.db.pool, instanceId), statement)

test('a created instance is seen running and takes connections with its password', async () => {
  await waitUntil('the host is known', () => fixture.log.lines.some((line) => line.event === 'host.greeted'))
  const operation = await fixture.runToEnd('create-instance', {
    instanceId,
    name: 'demo',
    settings: { work_mem: '8MB' },
    ownerPasswordVerifier: scramVerifier(fixture.password),
  })
  expect(operation).toMatchObject({ state: 'succeeded', fault: null })
  expect(JSON.stringify(operation.input)).not.toContain('SCRAM')
  expect(await showInstance(fixture.db.pool, instanceId)).toMatchObject({
    state: 'running',
    role: 'primary',
    dataChecksums: true,
    connection: { user: 'postgres' },
  })
  expect(await ask('SHOW work_mem')).toEqual([{ work_mem: '8MB' }])
})

/** Asks what changes would do, as web does; answers what the controller wrote. */
async function check(targets: SettingCheckTarget[]) {
  const { checkId } = await inTransaction(fixture.db.pool, (tx) => askSettingCheck(tx, { targets, actor }))
  const answers = await waitUntil(
    'the check is answered',
    async () => (await readSettingCheck(fixture.db.pool, checkId))?.answers,
    60_000,
    10,
  )
  return { checkId, answers }
}

test('a check of settings is carried out on its host and answered once, for instances and for one to be made', async () => {
  const { hostId } = agent.home.installation
  const changes = [
    { name: 'max_connections', value: '70' },
    { name: 'work_mem', value: '1 parsec' },
    { name: 'shared_preload_libraries', value: '/tmp/somewhere.so' },
  ]
  const codes = (answer: SettingCheckAnswer | undefined) =>
    ((answer?.results ?? []) as { fault: { code: string } | null }[]).map((r) => r.fault?.code ?? null)
  const refused = [null, 'setting.invalid_value', 'setting.library_outside']
  const targets = [
    { instanceId, hostId, changes, acrossCluster: false },
    { instanceId: null, hostId, changes, acrossCluster: false },
  ]
  const { checkId, answers } = await check(targets)
  expect(answers.map((a) => [a.fault, codes(a)])).toEqual([
    [null, refused],
    [null, refused],
  ])
  // an open operation of the instance neither holds it up nor is held up
  const restart = fixture.runToEnd('restart-instance', { instanceId, mode: 'fast' })
  const beside = await check([
    { instanceId, hostId, changes: [{ name: 'work_mem', value: '9MB' }], acrossCluster: false },
  ])
  expect(beside.answers[0]?.fault?.code).not.toBe('task.instance_busy')
  expect((await restart).state).toBe('succeeded')
  expect(checkId).not.toBe(beside.checkId)

  const unknown = await check([
    { instanceId: randomUUID(), hostId, changes: [{ name: 'work_mem', value: '9MB' }], acrossCluster: false },
  ])
  expect(unknown.answers[0]?.fault?.code).toBe('instance.not_found')
})

test('a host’s machine is checked by its agent, and what that tells is kept', async () => {
  const { hostId } = agent.home.installation
  await inTransaction(fixture.db.pool, (tx) => askHostCheck(tx, { hostId, actor }))
  const { last, failed } = await waitUntil(
    'the machine is checked',
    async () => {
      const shown = await showHostCheck(fixture.db.pool, hostId)
      return shown.last || shown.failed ? shown : null
    },
    60_000,
    10,
  )
  expect(failed).toBeNull()
  const names = last?.check.lines.map((line) => line.name) ?? []
  expect(names).toEqual(expect.arrayContaining(['vm.swappiness', 'nofile', 'clocksource']))
  expect(names.some((name) => name.startsWith('durability of /'))).toBe(true)
})

test('a check has one deadline for all its targets; over it, it is answered so and goes on nowhere', async () => {
  const { hostId } = agent.home.installation
  const changes = [{ name: 'max_connections', value: '71' }]
  const targets = [
    { instanceId, hostId, changes, acrossCluster: false },
    { instanceId: null, hostId, changes, acrossCluster: false },
  ]
  await controller.stop()
  controller = await fixture.start({ settingCheckMs: 20 })
  const { checkId, answers } = await check(targets)
  const late = {
    fault: {
      code: 'setting.check_too_slow',
      detail: 'It had not ended after 0.02 s.',
      hint: expect.stringContaining('overloaded'),
    },
    results: [],
  }
  expect(answers).toMatchObject([late, late])
  // the agent has ended what it began of it, and the next check finds nothing in its way
  const client = createAgentClient(agent.home.endpoint('task'))
  const key = { operationId: checkId, step: 'check-1', attempt: 1 }
  await waitUntil('the task has ended', async () =>
    // a machine that stood still began nothing
    ['cancelled', 'not-started'].includes(
      (await client.trpc.task.check.query({ key, afterLogSeq: 0 })).state,
    ),
  ).finally(() => client.close())
  await controller.stop()
  controller = await fixture.start()
  const next = await check([targets[0] as SettingCheckTarget])
  expect(next.answers).toMatchObject([{ fault: null, results: [{ name: 'max_connections', fault: null }] }])
})

test('a changed setting is confirmed by the engine and kept in the history with who asked', async () => {
  const changed = await fixture.runToEnd('change-settings', {
    instanceId,
    changes: [{ name: 'wal_compression', value: 'pglz' }],
  })
  expect(changed.state).toBe('succeeded')
  expect(await ask('SHOW wal_compression')).toEqual([{ wal_compression: 'pglz' }])
  expect(await listSettingChanges(fixture.db.pool, { instanceId })).toMatchObject([
    {
      name: 'wal_compression',
      oldValue: 'off',
      newValue: 'pglz',
      pendingRestart: false,
      actorName: 'Tester',
    },
  ])
  const refused = await fixture.runToEnd('change-settings', {
    instanceId,
    changes: [{ name: 'work_mem', value: 'a lot' }],
  })
  expect(refused).toMatchObject({ state: 'failed', fault: { code: 'setting.invalid_value' } })
  expect(await listSettingChanges(fixture.db.pool, { instanceId })).toHaveLength(1)
})

test('samples and checkpoints reach the database without a gap, also over a killed controller and a killed agent', async () => {
  // one that began after the restart of a test before: that is a gap which nothing can measure
  const beganAt = Date.now()
  const first = await waitUntil('samples are stored', async () => {
    const newest = (await readSamplesAfter(fixture.db.pool, { instanceId, afterSeq: -1 })).at(-1)
    return newest && newest.at - newest.intervalMs > beganAt ? newest.seq : undefined
  })
  await ask('CHECKPOINT')
  await controller.stop()
  await agent.end('SIGKILL')
  await agent.start()
  controller = await fixture.start()
  const resumedAt = Date.now()
  await waitUntil('sampling goes on', async () => {
    const newest = (await readSamplesAfter(fixture.db.pool, { instanceId, afterSeq: first })).at(-1)
    return newest && newest.at > resumedAt + 2_000
  })
  const samples = await readSamplesAfter(fixture.db.pool, { instanceId, afterSeq: first - 1 })
  const seqs = samples.map((s) => s.seq)
  expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, i) => (seqs[0] as number) + i))
  // rates cover the whole time: each sample begins where the one before ended
  for (let i = 1; i < samples.length; i++) {
    const [a, b] = [samples[i - 1], samples[i]] as [(typeof samples)[0], (typeof samples)[0]]
    expect(Math.abs(b.at - b.intervalMs - a.at)).toBeLessThan(250)
  }
  const history = await readSamples(fixture.db.pool, {
    instanceId,
    from: Date.now() - 60_000,
    to: Date.now(),
    metrics: ['tps'],
  })
  expect(history.points.length).toBeGreaterThan(3)
  const checkpoints = await waitUntil('the checkpoint is stored', async () => {
    const list = await listCheckpoints(fixture.db.pool, { instanceId })
    return list.some((c) => c.reasons.includes('force') || c.reasons.includes('fast')) ? list : null
  })
  expect(new Set(checkpoints.map((c) => c.seq)).size).toBe(checkpoints.length)
})

test('restart, stop, start and delete end with the instance seen as asked', async () => {
  const before = await showInstance(fixture.db.pool, instanceId)
  const restarted = await fixture.runToEnd('restart-instance', { instanceId })
  expect(restarted.state).toBe('succeeded')
  expect((await showInstance(fixture.db.pool, instanceId))?.postmasterPid).not.toBe(before?.postmasterPid)
  expect((await fixture.runToEnd('stop-instance', { instanceId })).state).toBe('succeeded')
  expect(await showInstance(fixture.db.pool, instanceId)).toMatchObject({
    state: 'stopped',
    intent: 'stopped',
  })
  expect((await fixture.runToEnd('start-instance', { instanceId })).state).toBe('succeeded')
  expect(await showInstance(fixture.db.pool, instanceId)).toMatchObject({
    state: 'running',
    intent: 'running',
  })
  expect((await fixture.runToEnd('reload-instance', { instanceId })).state).toBe('succeeded')
  const deleted = await fixture.runToEnd('delete-instance', { instanceId, confirmName: 'demo' })
  expect(deleted).toMatchObject({ state: 'succeeded', result: { removed: true } })
  expect((await showInstance(fixture.db.pool, instanceId))?.deletedAt).not.toBeNull()
  const { rows } = await fixture.db.pool.query('SELECT key FROM incident')
  expect(rows).toEqual([])
})

test('a creation that fails leaves nothing: no row, no directory, and its name is free', async () => {
  const id = randomUUID()
  for (const settings of [
    { shared_buffers: 'much' },
    { shared_bufers: '1GB' },
    { port: '3000' },
    // what only a start of the engine can find out: no network interface has this address
    { listen_addresses: '203.0.113.9' },
  ]) {
    const failed = await fixture.runToEnd('create-instance', {
      instanceId: randomUUID(),
      name: 'bad',
      settings,
    })
    expect(failed).toMatchObject({ state: 'failed', fault: { code: expect.stringMatching(/^setting\./) } })
  }
  expect((await listInstances(fixture.db.pool)).map((i) => i.name)).toEqual([])
  const directories = readdirSync(agent.home.installation.instancesDirectory)
  expect(directories.filter((name) => !name.startsWith('.'))).toEqual([])
  const again = await fixture.runToEnd('create-instance', { instanceId: id, name: 'bad' })
  expect(again.state).toBe('succeeded')
  expect(await fixture.runToEnd('delete-instance', { instanceId: id, confirmName: 'bad' })).toMatchObject({
    state: 'succeeded',
  })
})

test('an instance that the agent has and this console does not know is an incident, until it is adopted', async () => {
  const id = InstanceId.parse(randomUUID())
  const client = createAgentClient(agent.home.endpoint('task'))
  const order = async (step: string, task: TaskInput) => {
    const key = { operationId: randomUUID(), step, attempt: 1 }
    await client.trpc.task.start.mutate({ key, task })
    await waitUntil(
      `${step} has ended`,
      async () => (await client.trpc.task.check.query({ key })).state === 'succeeded',
      30_000,
    )
  }
  const formerName = InstanceName.parse('made-since')
  const ownerPasswordVerifier = scramVerifier(fixture.password)
  await order('create', {
    kind: 'create-instance',
    instanceId: id,
    name: formerName,
    settings: {},
    ownerPasswordVerifier,
  })
  await order('start', { kind: 'start-instance', instanceId: id })
  const seen = (await client.trpc.report.read.query({ after: null })).instances.find(
    (i) => i.instanceId === id,
  )
  await client.close()
  const incident = async () =>
    (await listIncidents(fixture.db.pool)).find((i) => i.key === `instance-unregistered:${id}`)
  const { hint } = await waitUntil('it is an incident', incident)
  expect(hint).toContain(`./floe instance adopt made-since --host ${agent.home.installation.hostName}`)
  const reported = {
    name: 'known-now',
    formerName,
    port: seen?.port,
    systemIdentifier: seen?.systemIdentifier,
  }
  const adopted = await fixture.runToEnd('adopt-instance', {
    instanceId: id,
    reported: { ...reported, intent: 'running' },
  })
  expect(adopted).toMatchObject({
    state: 'succeeded',
    result: { postmasterPid: seen?.postmasterPid, port: seen?.port, lost: [] },
  })
  await waitUntil('the incident is over', async () => !(await incident()))
  const row = await waitUntil('it is seen by its new name', async () => {
    const found = (await listInstances(fixture.db.pool)).find((i) => i.instanceId === id)
    return found?.state === 'running' && found
  })
  expect(row).toMatchObject({
    name: 'known-now',
    systemIdentifier: seen?.systemIdentifier,
    cluster: { name: 'known-now', memberRole: 'primary', members: 1 },
  })
  await waitUntil(
    'its samples are stored',
    async () => (await readSamplesAfter(fixture.db.pool, { instanceId: id, afterSeq: -1 })).length > 1,
  )
  // from now on it is missed when it is lost, though no operation of this console created it
  await agent.end('SIGKILL')
  rmSync(join(agent.home.home, 'agent/instances', `${id}.json`))
  rmSync(join(agent.home.installation.instancesDirectory, id, 'registration.json'))
  await agent.start()
  await waitUntil('it is missing', async () =>
    (await listIncidents(fixture.db.pool)).some((i) => i.key === `instance-missing:${id}`),
  )
  expect(await fixture.runToEnd('adopt-instance', { instanceId: id })).toMatchObject({
    state: 'succeeded',
    result: { postmasterPid: seen?.postmasterPid },
  })
  expect(
    await fixture.runToEnd('delete-instance', { instanceId: id, confirmName: 'known-now' }),
  ).toMatchObject({
    state: 'succeeded',
  })
})
