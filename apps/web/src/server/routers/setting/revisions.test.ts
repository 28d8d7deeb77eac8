import { insertSettingRevision, inTransaction } from '@floe/db'
import { insertTestInstance } from '@floe/db/testing'
import { InstanceId, type OperationId } from '@floe/domain'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'
import { changesTo } from './way-back'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterAll(() => it.close())

/** The operation as if the controller had carried it out. */
const done = async (
  operationId: OperationId,
  managed: Record<string, string>,
  before?: Record<string, string>,
) => {
  await inTransaction(it.database.pool, (tx) => insertSettingRevision(tx, operationId, { managed, before }))
  await it.database.pool.query(`UPDATE operation SET state = 'succeeded', "endedAt" = now() WHERE id = $1`, [
    operationId,
  ])
}

test('the way from one revision to another sets what is there and takes away what was not', () => {
  expect(changesTo({ a: '1', b: '2', c: '3' }, { b: '2', c: '4', d: '5' })).toEqual([
    { name: 'a', value: null },
    { name: 'c', value: '4' },
    { name: 'd', value: '5' },
  ])
})

test('every change makes a revision, and one press goes back to any of them, with who and why', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const made = await insertTestInstance(it.database)
  const instanceId = InstanceId.parse(made.instanceId)
  const set = (value: string, reason?: string) =>
    caller.setting.set({ scope: { instanceId }, changes: [{ name: 'work_mem', value }], reason })
  await done((await set('8MB', 'reports spill')).operationId, { work_mem: '8MB' }, { fsync: 'on' })
  await done((await set('64MB')).operationId, { work_mem: '64MB' })

  const { revisions } = await caller.setting.revisions({ scope: { instanceId } })
  expect(revisions.map((s) => [s.members[0]?.managed, s.reason, s.members[0]?.changes.length])).toEqual([
    [{ work_mem: '64MB' }, null, 0],
    [{ work_mem: '8MB' }, 'reports spill', 1],
    [{ fsync: 'on' }, 'as it was found', 2],
  ])
  const [holds, , first] = revisions
  await expect(
    caller.setting.rollBack({ scope: { instanceId }, revisionId: holds?.revisionId as string }),
  ).rejects.toThrow('as they were in that revision')
  await expect(caller.setting.rollBack({ scope: { instanceId }, revisionId: '999999' })).rejects.toThrow(
    'no revision 999999',
  )

  const asked = {
    scope: { instanceId },
    revisionId: first?.revisionId as string,
    idempotencyKey: 'one-roll-back',
  }
  const { operationId } = await caller.setting.rollBack(asked)
  const { operation } = await caller.operation.show({ operationId })
  expect(operation.input).toMatchObject({
    changes: [
      { name: 'fsync', value: 'on' },
      { name: 'work_mem', value: null },
    ],
    reason: expect.stringMatching(/^rolled back to the revision of \d{4}-\d\d-\d\d /),
  })

  // a repeated request is the same operation, also when nothing is left to change
  await done(operationId, { fsync: 'on' })
  expect(await caller.setting.rollBack(asked)).toEqual({ operationId })
  await expect(caller.setting.rollBack({ ...asked, idempotencyKey: undefined })).rejects.toThrow(
    'as they were in that revision',
  )
  // the key answers for this revision of this instance, and for nothing else
  const other = InstanceId.parse((await insertTestInstance(it.database)).instanceId)
  for (const reused of [
    { ...asked, revisionId: revisions[1]?.revisionId as string },
    { ...asked, scope: { instanceId: other } },
  ])
    await expect(caller.setting.rollBack(reused)).rejects.toMatchObject({
      cause: { fault: { code: 'operation.key_reused', detail: expect.stringContaining(operationId) } },
    })
})

test('after a hundred changes the newest revision still holds, and differences are those from it', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const made = await insertTestInstance(it.database)
  const instanceId = InstanceId.parse(made.instanceId)
  for (let n = 1; n <= 105; n++) {
    const changes = [{ name: 'work_mem', value: `${n}MB` }]
    await done((await caller.setting.set({ scope: { instanceId }, changes })).operationId, {
      work_mem: `${n}MB`,
    })
  }
  const { revisions } = await caller.setting.revisions({ scope: { instanceId }, limit: 200 })
  expect(revisions.map((s) => s.members[0]?.managed.work_mem)).toEqual(
    revisions.map((_, i) => `${105 - i}MB`),
  )
  expect(revisions[0]?.members[0]?.changes).toEqual([])
  expect(revisions.slice(1).every((s) => s.members[0]?.changes.length === 1)).toBe(true)
  await expect(
    caller.setting.rollBack({ scope: { instanceId }, revisionId: revisions[0]?.revisionId as string }),
  ).rejects.toThrow('as they were in that revision')
  const { operationId } = await caller.setting.rollBack({
    scope: { instanceId },
    revisionId: revisions[7]?.revisionId as string,
  })
  expect((await caller.operation.show({ operationId })).operation.input).toMatchObject({
    changes: [{ name: 'work_mem', value: '98MB' }],
  })
})

test('another instance’s revision is none of this one’s', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const [one, two] = [await insertTestInstance(it.database), await insertTestInstance(it.database)]
  const instanceId = InstanceId.parse(one.instanceId)
  const { operationId } = await caller.setting.set({
    scope: { instanceId },
    changes: [{ name: 'fsync', value: 'on' }],
  })
  await done(operationId, { fsync: 'on' })
  const { revisions } = await caller.setting.revisions({ scope: { instanceId } })
  await expect(
    caller.setting.rollBack({
      scope: { instanceId: InstanceId.parse(two.instanceId) },
      revisionId: revisions[0]?.revisionId as string,
    }),
  ).rejects.toThrow('no revision')
})

test('drift is what the agent told, and adopting or reverting it is an operation', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const made = await insertTestInstance(it.database)
  const instanceId = InstanceId.parse(made.instanceId)
  expect(await caller.setting.drift({ scope: { instanceId } })).toEqual({
    members: [{ instanceId, name: made.name, memberRole: 'primary', observedAt: null }],
    drift: [],
  })
  const drift = [{ name: 'work_mem', file: 'postgresql.auto.conf', line: 3, was: null, is: '1GB' }]
  await it.database.pool.query(`UPDATE instance SET observed = $2, "observedAt" = now() WHERE id = $1`, [
    instanceId,
    JSON.stringify({ settingDrift: drift }),
  ])
  expect((await caller.setting.drift({ scope: { instanceId } })).drift).toEqual([
    { ...drift[0], instanceId, instanceName: made.name },
  ])
  const { operationId } = await caller.setting.revert({ instanceId, reason: 'not agreed' })
  expect((await caller.operation.show({ operationId })).operation).toMatchObject({
    kind: 'resolve-drift',
    input: { how: 'revert', reason: 'not agreed' },
  })
  await expect(caller.setting.adopt({ instanceId })).rejects.toThrow('has not ended')
})
