import { randomUUID } from 'node:crypto'
import {
  type InstanceView,
  inTransaction,
  listAuditEvents,
  listInstances,
  listOperations,
  markInstanceDeleted,
  setDeletionProtected,
  showInstance,
  showOperation,
} from '@floe/db'
import { createTestDatabase, insertTestInstance, type TestDatabase } from '@floe/db/testing'
import type {} from '@floe/db/testing/engine-for-suite'
import type { OperationInput } from '@floe/domain'
import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { cancelOperation, OperationConflict, retryOperation, submitOperation } from './submit'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
})
afterAll(() => db.drop())

const actor = { id: 'user-1', name: 'Ada' }
const start = (instanceId: string, idempotencyKey?: string) =>
  submitOperation(db.as.web, {
    kind: 'start-instance',
    input: { instanceId } as OperationInput<'start-instance'>,
    actor,
    idempotencyKey,
  })
const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'none',
    (error) => error.fault?.code ?? String(error),
  )
const rowsOf = async (table: string) =>
  Number((await db.pool.query(`SELECT count(*) FROM ${table}`)).rows[0].count)

test('a change is intent, operation and audit row in one transaction', async () => {
  const { hostId } = await insertTestInstance(db)
  const instanceId = randomUUID()
  const { operationId, created } = await submitOperation(db.as.web, {
    kind: 'create-instance',
    input: {
      instanceId,
      name: 'fresh',
      ownerPasswordVerifier: 'SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy',
    } as OperationInput<'create-instance'>,
    actor,
    hostId,
    audit: { ipAddress: '192.0.2.1' },
  })
  expect(created).toBe(true)
  expect(await showInstance(db.pool, instanceId)).toMatchObject({
    name: 'fresh',
    intent: 'running',
    state: 'unknown',
  })
  expect(await showOperation(db.pool, operationId)).toMatchObject({
    state: 'queued',
    kind: 'create-instance',
  })
  const [audit] = await listAuditEvents(db.pool)
  expect(audit).toMatchObject({
    action: 'instance.create',
    actorName: 'Ada',
    outcome: 'allowed',
    objectId: instanceId,
    ipAddress: '192.0.2.1',
    detail: { operationId, name: 'fresh' },
  })
  expect(JSON.stringify(audit)).not.toContain('SCRAM')
})

test('a second operation on an instance is refused with the one that blocks it, and leaves nothing behind', async () => {
  const { instanceId, name } = await insertTestInstance(db)
  const first = await start(instanceId)
  const before = [await rowsOf('operation'), await rowsOf('audit_event')]
  const refusal = await submitOperation(db.as.web, {
    kind: 'stop-instance',
    input: { instanceId, mode: 'fast' } as OperationInput<'stop-instance'>,
    actor,
  }).catch((error) => error)
  expect(refusal).toBeInstanceOf(OperationConflict)
  expect(refusal.blockingOperationId).toBe(first.operationId)
  expect(refusal.fault).toMatchObject({ code: 'operation.conflict', message: expect.stringContaining(name) })
  expect(refusal.fault.detail).toContain(first.operationId)
  expect([await rowsOf('operation'), await rowsOf('audit_event')]).toEqual(before)
  expect((await showInstance(db.pool, instanceId))?.intent).toBe('running')
})

test('an immediate stop of what is being stopped fast escalates that stop; anything else waits for it', async () => {
  const { instanceId } = await insertTestInstance(db)
  const stop = (mode: 'fast' | 'immediate') =>
    submitOperation(db.as.web, {
      kind: 'stop-instance',
      input: { instanceId, mode } as OperationInput<'stop-instance'>,
      actor,
    })
  const first = await stop('fast')
  expect(await code(stop('fast'))).toBe('operation.conflict')
  expect(await code(start(instanceId))).toBe('operation.conflict')
  expect(await stop('immediate')).toMatchObject({ operationId: first.operationId, created: false })
  expect((await showOperation(db.pool, first.operationId))?.input).toMatchObject({
    mode: 'immediate',
    hastened: true,
  })
  const [audit] = await listAuditEvents(db.pool)
  expect(audit).toMatchObject({
    action: 'instance.stop',
    detail: { operationId: first.operationId, hastened: true },
  })
  // it is immediate already
  expect(await code(stop('immediate'))).toBe('operation.conflict')
})

test('of twenty submits at once exactly one gets through', async () => {
  const { instanceId } = await insertTestInstance(db)
  const answers = await Promise.allSettled(Array.from({ length: 20 }, () => start(instanceId)))
  expect(answers.filter((a) => a.status === 'fulfilled')).toHaveLength(1)
  for (const a of answers) if (a.status === 'rejected') expect(a.reason).toBeInstanceOf(OperationConflict)
})

test('one idempotency key is one operation, however often and at the same time it is sent', async () => {
  const { instanceId } = await insertTestInstance(db)
  const key = randomUUID()
  const answers = await Promise.all(Array.from({ length: 20 }, () => start(instanceId, key)))
  expect(new Set(answers.map((a) => a.operationId)).size).toBe(1)
  expect(answers.filter((a) => a.created)).toHaveLength(1)
  expect(
    await code(
      submitOperation(db.as.web, {
        kind: 'stop-instance',
        input: { instanceId, mode: 'fast' } as never,
        actor,
        idempotencyKey: key,
      }),
    ),
  ).toBe('operation.key_reused')
  expect(
    await code(
      submitOperation(db.as.web, {
        kind: 'start-instance',
        input: { instanceId } as never,
        actor: { id: 'user-2', name: 'Bob' },
        idempotencyKey: key,
      }),
    ),
  ).toBe('operation.key_reused')
})

test('a key that was used for something else is refused with the operation it began', async () => {
  const [one, two] = [await insertTestInstance(db), await insertTestInstance(db)]
  const key = randomUUID()
  const ask = (
    input: object,
    kind: 'stop-instance' | 'change-settings' = 'stop-instance',
    more: object = {},
  ) => submitOperation(db, { kind, input: input as never, actor, idempotencyKey: key, ...more })
  const end = (operationId: string) =>
    db.pool.query(`UPDATE operation SET state = 'failed', "endedAt" = now() WHERE id = $1`, [operationId])
  const first = await ask({ instanceId: one.instanceId, mode: 'fast' })
  expect(await ask({ mode: 'fast', instanceId: one.instanceId })).toMatchObject({
    operationId: first.operationId,
    created: false,
  })
  const refusal = await ask({ instanceId: two.instanceId, mode: 'fast' }).catch((error) => error)
  expect(refusal.fault).toMatchObject({
    code: 'operation.key_reused',
    detail: `It started operation ${first.operationId} (Stop instance).`,
  })
  expect(await code(ask({ instanceId: one.instanceId, mode: 'immediate' }))).toBe('operation.key_reused')
  // an input that is worked out later is not worked out for a key that is known
  const never = () => Promise.reject(new Error('worked out'))
  const asked = { instanceId: one.instanceId }
  expect(await ask(never, 'stop-instance', { asked })).toMatchObject({ operationId: first.operationId })
  expect(await code(ask(never, 'stop-instance', { asked: { instanceId: two.instanceId } }))).toBe(
    'operation.key_reused',
  )
  expect(await code(ask(never, 'change-settings', { asked }))).toBe('operation.key_reused')
  // escalated meanwhile, it is the one that was asked for all the same
  await submitOperation(db, {
    kind: 'stop-instance',
    input: { instanceId: one.instanceId, mode: 'immediate' } as never,
    actor,
  })
  expect(await ask({ instanceId: one.instanceId, mode: 'fast' })).toMatchObject({
    operationId: first.operationId,
  })
  await end(first.operationId)
  // taking it up again is another operation
  const retry = (idempotencyKey: string) =>
    retryOperation(db, { operationId: first.operationId, actor, idempotencyKey })
  expect(await code(retry(key))).toBe('operation.key_reused')
  const retryKey = randomUUID()
  const again = await retry(retryKey)
  expect(await retry(retryKey)).toMatchObject({ operationId: again.operationId, created: false })
})

test('a key of a create answers for the same name, settings and host only', async () => {
  const [here, there] = [await insertTestInstance(db), await insertTestInstance(db)]
  const key = randomUUID()
  const create = (name: string, hostId: string, settings: Record<string, string> = {}) =>
    submitOperation(db, {
      kind: 'create-instance',
      input: { instanceId: randomUUID(), name, settings, ownerPasswordVerifier: null } as never,
      actor,
      hostId,
      idempotencyKey: key,
    })
  const first = await create('one-key', here.hostId)
  expect(await create('one-key', here.hostId)).toMatchObject({ operationId: first.operationId })
  for (const other of [
    () => create('other', here.hostId),
    () => create('one-key', there.hostId),
    () => create('one-key', here.hostId, { work_mem: '8MB' }),
  ])
    expect(await code(other())).toBe('operation.key_reused')
})

test('a repeated create answers the first one’s instance, also when both are sent at once', async () => {
  const { hostId } = await insertTestInstance(db)
  const key = randomUUID()
  const submit = () =>
    submitOperation(db.as.web, {
      kind: 'create-instance',
      input: { instanceId: randomUUID(), name: 'once' } as OperationInput<'create-instance'>,
      actor,
      hostId,
      idempotencyKey: key,
    })
  const answers = await Promise.all([submit(), submit(), submit()])
  expect(new Set(answers.map((a) => a.instanceId)).size).toBe(1)
  expect((await listInstances(db.pool)).filter((i) => i.name === 'once')).toHaveLength(1)
})

test('a name is taken until its instance is deleted', async () => {
  const { hostId, instanceId, name } = await insertTestInstance(db)
  const create = () =>
    submitOperation(db.as.web, {
      kind: 'create-instance',
      input: { instanceId: randomUUID(), name } as OperationInput<'create-instance'>,
      actor,
      hostId,
    })
  expect(await code(create())).toBe('instance.name_taken')
  await markInstanceDeleted(db.pool, instanceId)
  await create()
  expect(await code(start(instanceId))).toBe('instance.not_found')
})

test('a delete needs the name typed as it is', async () => {
  const { instanceId, name } = await insertTestInstance(db)
  const remove = (confirmName: string) =>
    submitOperation(db.as.web, {
      kind: 'delete-instance',
      input: { instanceId, confirmName, keepFiles: false } as OperationInput<'delete-instance'>,
      actor,
    })
  expect(await code(remove(name.toUpperCase()))).toBe('instance.name_mismatch')
  expect((await showInstance(db.pool, instanceId))?.intent).toBe('running')
  await remove(name)
  expect((await showInstance(db.pool, instanceId))?.intent).toBe('deleted')
})

test('what is protected from deletion is not deleted, and a deletion that is ordered is past protecting', async () => {
  const { instanceId, name } = await insertTestInstance(db)
  const { cluster } = (await showInstance(db.pool, instanceId)) as InstanceView
  const protect = (on: boolean) =>
    code(inTransaction(db.as.web.pool, (tx) => setDeletionProtected(tx, cluster, on)))
  const remove = () =>
    submitOperation(db.as.web, {
      kind: 'delete-instance',
      input: { instanceId, confirmName: name, keepFiles: false } as OperationInput<'delete-instance'>,
      actor,
    })
  expect(await protect(true)).toBe('none')
  expect(await code(remove())).toBe('cluster.deletion_protected')
  expect(await showInstance(db.pool, instanceId)).toMatchObject({
    intent: 'running',
    operation: null,
    cluster: { deletionProtected: true },
  })
  expect(await protect(false)).toBe('none')
  // of two at once one comes first: never is a protected instance being deleted
  const deleted = code(remove())
  const both = await Promise.all([deleted, protect(true)])
  expect([
    ['none', 'cluster.being_deleted'],
    ['cluster.deletion_protected', 'none'],
  ]).toContainEqual(both)
  if (both[0] !== 'none') {
    await protect(false)
    await remove()
  }
  expect(await protect(true)).toBe('cluster.being_deleted')
})

test('bad input, an unknown instance and an unknown host are refused by name', async () => {
  expect(await code(start('not-a-uuid'))).toBe('operation.invalid_input')
  expect(await code(start(randomUUID()))).toBe('instance.not_found')
  const create = (hostId?: string) =>
    submitOperation(db.as.web, {
      kind: 'create-instance',
      input: { instanceId: randomUUID(), name: 'x' } as OperationInput<'create-instance'>,
      actor,
      hostId,
    })
  expect(await code(create(randomUUID()))).toBe('host.not_found')
  // other tests have made several
  expect(await code(create())).toBe('host.ambiguous')
})

test('a queued operation is cancelled at once, a running one when its step gave up; an ended one cannot be', async () => {
  const { instanceId } = await insertTestInstance(db)
  const { operationId } = await start(instanceId)
  expect(await cancelOperation(db.as.web, { operationId, actor })).toEqual({ state: 'cancelled' })
  expect(await code(cancelOperation(db.as.web, { operationId, actor }))).toBe('operation.ended')
  expect(await code(cancelOperation(db.as.web, { operationId: randomUUID(), actor }))).toBe(
    'operation.not_found',
  )
  const running = await start(instanceId)
  await db.pool.query(`UPDATE operation SET state = 'running' WHERE id = $1`, [running.operationId])
  expect(await cancelOperation(db.as.web, { operationId: running.operationId, actor })).toEqual({
    state: 'cancelling',
  })
  expect(await cancelOperation(db.as.web, { operationId: running.operationId, actor })).toEqual({
    state: 'cancelling',
  })
})

test('only what failed or was cancelled can be retried, as a new operation linked to the old one', async () => {
  const { instanceId } = await insertTestInstance(db)
  const { operationId } = await start(instanceId)
  expect(await code(retryOperation(db.as.web, { operationId, actor }))).toBe('operation.not_retryable')
  await cancelOperation(db.as.web, { operationId, actor })
  const retried = await retryOperation(db.as.web, { operationId, actor })
  expect(await showOperation(db.pool, retried.operationId)).toMatchObject({
    retryOf: operationId,
    state: 'queued',
  })
  expect(await showOperation(db.pool, operationId)).toMatchObject({
    retriedBy: retried.operationId,
    state: 'cancelled',
  })
  expect(await listOperations(db.pool, { instanceId, states: ['queued'] })).toHaveLength(1)
})

/** A cluster with a standby that is being made on another host. */
async function standbyToBe() {
  const primary = await insertTestInstance(db)
  const other = await insertTestInstance(db)
  const instanceId = randomUUID()
  const name = `s-${instanceId.slice(0, 8)}`
  const { rows } = await db.pool.query('SELECT "clusterId" FROM instance WHERE id = $1', [primary.instanceId])
  const clusterId = rows[0].clusterId as string
  const createAgain = () =>
    submitOperation(db.as.web, {
      kind: 'create-standby',
      input: { instanceId: randomUUID(), name, clusterId } as OperationInput<'create-standby'>,
      actor,
      hostId: other.hostId,
    })
  const { operationId } = await submitOperation(db.as.web, {
    kind: 'create-standby',
    input: { instanceId, name, clusterId } as OperationInput<'create-standby'>,
    actor,
    hostId: other.hostId,
  })
  const hostName = (await showInstance(db.pool, instanceId))?.host.name as string
  return { instanceId, name, operationId, createAgain, hostName }
}

test('a standby whose creation was taken back has no row, its name is free, and a retry makes the row anew', async () => {
  const it = await standbyToBe()
  await db.pool.query(`UPDATE operation SET state = 'failed', "endedAt" = now() WHERE id = $1`, [
    it.operationId,
  ])
  await markInstanceDeleted(db.pool, it.instanceId)
  const retried = await retryOperation(db.as.web, { operationId: it.operationId, actor })
  expect(await showInstance(db.pool, it.instanceId)).toMatchObject({ deletedAt: null, intent: 'running' })
  await cancelOperation(db.as.web, { operationId: retried.operationId, actor })
  await markInstanceDeleted(db.pool, it.instanceId)
  await it.createAgain()
  expect(await code(retryOperation(db.as.web, { operationId: retried.operationId, actor }))).toBe(
    'instance.name_taken',
  )
})

test('a standby that is cancelled before it was begun is gone at once', async () => {
  const it = await standbyToBe()
  await cancelOperation(db.as.web, { operationId: it.operationId, actor })
  expect((await showInstance(db.pool, it.instanceId))?.deletedAt).not.toBeNull()
  await it.createAgain()
})

test('a standby is removed without its host only where that host’s own name was typed', async () => {
  const it = await standbyToBe()
  await db.pool.query(`UPDATE operation SET state = 'succeeded', "endedAt" = now() WHERE id = $1`, [
    it.operationId,
  ])
  const remove = (unreachableHost: string) =>
    submitOperation(db.as.web, {
      kind: 'remove-standby',
      input: { instanceId: it.instanceId, confirmName: it.name, unreachableHost } as never,
      actor,
    })
  expect(await code(remove('elsewhere'))).toBe('host.name_mismatch')
  expect((await remove(it.hostName)).created).toBe(true)
})

test('the verifier of a password is kept for a retry, and gone once the instance was created', async () => {
  const { hostId } = await insertTestInstance(db)
  const verifier = 'SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy'
  const kept = async () => {
    const { rows } = await db.pool.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM operation WHERE input::text LIKE '%' || $1 || '%'`,
      [verifier],
    )
    return rows[0]?.n
  }
  const before = (await kept()) ?? 0
  const end = (operationId: string, state: string) =>
    db.as.controller.pool.query('UPDATE operation SET state = $2, "endedAt" = now() WHERE id = $1', [
      operationId,
      state,
    ])
  const first = await submitOperation(db.as.web, {
    kind: 'create-instance',
    input: {
      instanceId: randomUUID(),
      name: 'with-password',
      settings: {},
      ownerPasswordVerifier: verifier,
    } as unknown as OperationInput<'create-instance'>,
    actor,
    hostId,
  })
  await end(first.operationId, 'failed')
  const second = await retryOperation(db.as.web, { operationId: first.operationId, actor })
  await end(second.operationId, 'failed')
  const third = await retryOperation(db.as.web, { operationId: second.operationId, actor })
  expect(await kept()).toBe(before + 3)
  await end(third.operationId, 'succeeded')
  expect(await kept()).toBe(before)
  expect((await showOperation(db.pool, third.operationId))?.input).toMatchObject({ name: 'with-password' })
  expect(await code(retryOperation(db.as.web, { operationId: first.operationId, actor }))).toBe(
    'operation.not_retryable',
  )
})

test('a cancel that waits while the point of no return is passed is refused, and asks nothing', async () => {
  const { instanceId } = await insertTestInstance(db)
  const { operationId } = await start(instanceId)
  await db.pool.query(`UPDATE operation SET kind = 'promote-standby', state = 'running' WHERE id = $1`, [
    operationId,
  ])
  await db.pool.query(
    `INSERT INTO operation_step ("operationId", position, name, title, state) VALUES ($1, 0, 'promote', 'Promote it', 'pending')`,
    [operationId],
  )
  const pass = await db.pool.connect()
  try {
    await pass.query('BEGIN')
    const { rows: held } = await pass.query(
      `SELECT pg_current_xact_id()::xid AS xid FROM operation WHERE id = $1 FOR UPDATE`,
      [operationId],
    )
    const cancelled = code(cancelOperation(db.as.web, { operationId, actor }))
    await waitUntil('the cancel waits', async () => {
      const { rows } = await db.pool.query(
        `SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid' AND transactionid = $1`,
        [held[0].xid],
      )
      return rows.length === 1
    })
    await pass.query(
      `UPDATE operation_step SET state = 'running', "startedAt" = now() WHERE "operationId" = $1`,
      [operationId],
    )
    await pass.query('COMMIT')
    expect(await cancelled).toBe('operation.past_no_return')
  } finally {
    pass.release()
  }
  expect(await showOperation(db.pool, operationId)).toMatchObject({ state: 'running', cancelAskedAt: null })
})

test('an instance that an agent reports and no row tells of gets one, and a cluster of its own', async () => {
  const { hostId, instanceId: known, name: taken } = await insertTestInstance(db)
  const adopt = (instanceId: string, name: string, more: object = {}) =>
    submitOperation(db.as.web, {
      kind: 'adopt-instance',
      input: {
        instanceId,
        reported: { name, formerName: 'there', port: 20_001, systemIdentifier: '42', intent: 'stopped' },
      } as OperationInput<'adopt-instance'>,
      actor,
      hostId,
      ...more,
    })
  const instanceId = randomUUID()
  expect(await code(adopt(instanceId, taken))).toBe('instance.name_taken')
  expect(await showInstance(db.pool, instanceId)).toBeUndefined()
  const { operationId } = await adopt(instanceId, 'found')
  expect(await showInstance(db.pool, instanceId)).toMatchObject({
    name: 'found',
    intent: 'stopped',
    host: { hostId },
    systemIdentifier: null,
    cluster: { clusterId: instanceId, name: 'found', memberRole: 'primary', members: 1 },
    operation: { operationId, kind: 'adopt-instance' },
  })
  expect(await code(adopt(known, 'other'))).toBe('instance.exists')
  await markInstanceDeleted(db.pool, known)
  expect(await code(adopt(known, 'other'))).toBe('instance.was_deleted')
})

test('an operation that only reads neither waits for another one nor keeps one from being ordered', async () => {
  const { instanceId } = await insertTestInstance(db)
  const preview = () =>
    submitOperation(db.as.web, {
      kind: 'preview-flashback',
      input: {
        instanceId,
        database: 'shop',
        table: 16_400,
        tableName: 'public.account',
        at: '2026-11-23T23:40:00Z',
      } as OperationInput<'preview-flashback'>,
      actor,
    })
  await preview()
  await start(instanceId)
  await preview()
  expect(await code(start(instanceId))).toBe('operation.conflict')
  // not the one that reads is named as what the instance is busy with
  expect((await showInstance(db.pool, instanceId))?.operation).toMatchObject({ kind: 'start-instance' })
})

test('so many of them at once and no more, also of many that ask at once', async () => {
  const { instanceId } = await insertTestInstance(db)
  const codes = await Promise.all(
    Array.from({ length: 8 }, () =>
      code(
        submitOperation(db.as.web, {
          kind: 'export-flashback',
          input: {
            instanceId,
            database: 'shop',
            result: 16_500,
            resultName: 'public.polar_flashback_16400',
          } as OperationInput<'export-flashback'>,
          actor,
        }),
      ),
    ),
  )
  expect(codes.sort()).toEqual([...Array(4).fill('none'), ...Array(4).fill('operation.too_many')])
})
