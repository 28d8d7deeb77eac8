import { execFileSync } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { scramVerifier } from '@floe/agent-contract'
import {
  listCheckpoints,
  listSettingChanges,
  newestSeq,
  readSamples,
  readSamplesAfter,
  showInstance,
  showOperation,
} from '@floe/db'
import { createTestDatabase, type TestDatabase } from '@floe/db/testing'
import type { OperationInput, OperationKind } from '@floe/domain'
import { submitOperation } from '@floe/operations/submit'
import { makeThrowawayHome, ThrowawayAgent, waitUntil } from '@floe/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { startController } from './controller'
import { actor, keptLog } from './testing/bench-of-controllers'

let db: TestDatabase
let agent: ThrowawayAgent
let controller: ReturnType<typeof startController>
const log = keptLog()
const instanceId = randomUUID()
const password = randomBytes(12).toString('base64url')

const start = () =>
  startController({
    connectionString: db.connectionString,
    authority: agent.home.authority.signing,
    authSecret: 'a secret of the tests',
    identity: () => agent.home.identities.task,
    host: {
      hostId: agent.home.installation.hostId,
      name: agent.home.installation.hostName,
      agentUrl: agent.home.agentUrl,
    },
    log,
  })

beforeAll(async () => {
  const home = await makeThrowawayHome()
  const bundle = join(home.home, 'agent.js')
  execFileSync(process.execPath, ['build.mjs', bundle], { cwd: join(import.meta.dirname, '../../agent') })
  db = await createTestDatabase(inject('engineConnectionString'))
  agent = new ThrowawayAgent(home, bundle)
  await agent.start()
  controller = start()
})
afterAll(async () => {
  await controller.stop()
  await agent.remove()
  await db.drop()
})

/** Submits an operation and waits until it has ended; throws with its fault when it did not succeed. */
async function carryOut<K extends OperationKind>(kind: K, input: unknown) {
  const { operationId } = await submitOperation(db, { kind, input: input as OperationInput<K>, actor })
  return waitUntil(
    `operation ${kind} ended`,
    async () => {
      const seen = await showOperation(db.pool, operationId)
      return seen?.endedAt ? seen : null
    },
    30_000,
  )
}

async function ask<T>(statement: string): Promise<T[]> {
  const instance = await showInstance(db.pool, instanceId)
  const client = new pg.Client({
    host: '127.0.0.1',
    port: instance?.port ?? 0,
    user: 'postgres',
    database: 'postgres',
    password,
  })
  await client.connect()
  try {
    return (await client.query(statement)).rows as T[]
  } finally {
    await client.end()
  }
}

test('a created instance is seen running and takes connections with its password', async () => {
  await waitUntil('the host is known', () => log.lines.some((line) => line.event === 'host.greeted'))
  const operation = await carryOut('create-instance', {
    instanceId,
    name: 'demo',
    settings: { work_mem: '8MB' },
    ownerPasswordVerifier: scramVerifier(password),
  })
  expect(operation).toMatchObject({ state: 'succeeded', fault: null })
  expect(JSON.stringify(operation.input)).not.toContain('SCRAM')
  expect(await showInstance(db.pool, instanceId)).toMatchObject({
    state: 'running',
    role: 'primary',
    dataChecksums: true,
    connection: { user: 'postgres' },
  })
  expect(await ask('SHOW work_mem')).toEqual([{ work_mem: '8MB' }])
})

test('a changed setting is confirmed by the engine and kept in the history with who asked', async () => {
  const changed = await carryOut('change-settings', {
    instanceId,
    changes: [{ name: 'wal_compression', value: 'pglz' }],
  })
  expect(changed.state).toBe('succeeded')
  expect(await ask('SHOW wal_compression')).toEqual([{ wal_compression: 'pglz' }])
  expect(await listSettingChanges(db.pool, { instanceId })).toMatchObject([
    {
      name: 'wal_compression',
      oldValue: 'off',
      newValue: 'pglz',
      pendingRestart: false,
      actorName: 'Tester',
    },
  ])
  const refused = await carryOut('change-settings', {
    instanceId,
    changes: [{ name: 'work_mem', value: 'a lot' }],
  })
  expect(refused).toMatchObject({ state: 'failed', fault: { code: 'setting.invalid_value' } })
  expect(await listSettingChanges(db.pool, { instanceId })).toHaveLength(1)
})

test('samples and checkpoints reach the database without a gap, also over a killed controller and a killed agent', async () => {
  const first = await waitUntil('samples are stored', () => newestSeq(db.pool, instanceId))
  await ask('CHECKPOINT')
  await controller.stop()
  await agent.end('SIGKILL')
  await agent.start()
  controller = start()
  const resumedAt = Date.now()
  await waitUntil('sampling goes on', async () => {
    const newest = (await readSamplesAfter(db.pool, { instanceId, afterSeq: first })).at(-1)
    return newest && newest.at > resumedAt + 2_000
  })
  const samples = await readSamplesAfter(db.pool, { instanceId, afterSeq: -1 })
  const seqs = samples.map((s) => s.seq)
  expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, i) => (seqs[0] as number) + i))
  // rates cover the whole time: each sample begins where the one before ended
  for (let i = 1; i < samples.length; i++) {
    const [a, b] = [samples[i - 1], samples[i]] as [(typeof samples)[0], (typeof samples)[0]]
    expect(Math.abs(b.at - b.intervalMs - a.at)).toBeLessThan(250)
  }
  const history = await readSamples(db.pool, {
    instanceId,
    from: Date.now() - 60_000,
    to: Date.now(),
    metrics: ['tps'],
  })
  expect(history.points.length).toBeGreaterThan(3)
  const checkpoints = await waitUntil('the checkpoint is stored', async () => {
    const list = await listCheckpoints(db.pool, { instanceId })
    return list.some((c) => c.reasons.includes('force') || c.reasons.includes('fast')) ? list : null
  })
  expect(new Set(checkpoints.map((c) => c.seq)).size).toBe(checkpoints.length)
})

test('restart, stop, start and delete end with the instance seen as asked', async () => {
  const before = await showInstance(db.pool, instanceId)
  const restarted = await carryOut('restart-instance', { instanceId })
  expect(restarted.state).toBe('succeeded')
  expect((await showInstance(db.pool, instanceId))?.postmasterPid).not.toBe(before?.postmasterPid)
  expect((await carryOut('stop-instance', { instanceId })).state).toBe('succeeded')
  expect(await showInstance(db.pool, instanceId)).toMatchObject({ state: 'stopped', intent: 'stopped' })
  expect((await carryOut('start-instance', { instanceId })).state).toBe('succeeded')
  expect(await showInstance(db.pool, instanceId)).toMatchObject({ state: 'running', intent: 'running' })
  expect((await carryOut('reload-instance', { instanceId })).state).toBe('succeeded')
  const deleted = await carryOut('delete-instance', { instanceId, confirmName: 'demo' })
  expect(deleted).toMatchObject({ state: 'succeeded', result: { removed: true } })
  expect((await showInstance(db.pool, instanceId))?.deletedAt).not.toBeNull()
  const { rows } = await db.pool.query('SELECT key FROM incident')
  expect(rows).toEqual([])
})

test('an instance whose creation failed can be deleted, and its name is free again', async () => {
  const id = randomUUID()
  const failed = await carryOut('create-instance', {
    instanceId: id,
    name: 'bad',
    settings: { shared_buffers: 'much' },
  })
  expect(failed.state).toBe('failed')
  expect(await carryOut('delete-instance', { instanceId: id, confirmName: 'bad' })).toMatchObject({
    state: 'succeeded',
  })
  const again = await carryOut('create-instance', { instanceId: randomUUID(), name: 'bad' })
  expect(again.state).toBe('succeeded')
})
