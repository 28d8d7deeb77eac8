import { insertTestInstance } from '@floe/db/testing'
import { InstanceId } from '@floe/domain'
import { TRPCError } from '@trpc/server'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { faultOf } from './faults'
import { type ThrowawayConsole, throwawayConsole } from './testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterAll(() => it.close())

const callerAs = async (role: 'operator' | 'admin') => it.callerOf((await it.signedIn(role)).headers)
const codeOf = async (asked: Promise<unknown>) => {
  const error = await asked.then(
    () => undefined,
    (e: unknown) => e,
  )
  return error instanceof TRPCError ? faultOf(error).code : 'it was not refused'
}

test('a condition on rows is an admin’s, also to take up again; a merge without one is an operator’s', async () => {
  const [operator, admin] = [await callerAs('operator'), await callerAs('admin')]
  const { pool } = it.database
  const asked = async () => ({
    instanceId: InstanceId.parse((await insertTestInstance(it.database)).instanceId),
    database: 'shop',
    result: 16_500,
    resultName: 'public.polar_flashback_16400',
    tableName: 'public.account',
    insertMissing: true,
    restoreChanged: false,
    deleteAdded: false,
    dryRun: true,
  })
  const condition = 'note = 1'
  expect(await codeOf(operator.flashback.merge({ ...(await asked()), condition }))).toBe(
    'session.role_too_low',
  )
  const { operationId } = await admin.flashback.merge({ ...(await asked()), condition })
  await pool.query(`UPDATE operation SET state = 'failed', "endedAt" = now() WHERE id = $1`, [operationId])
  expect(await codeOf(operator.operation.retry({ operationId }))).toBe('session.role_too_low')
  expect((await operator.flashback.merge(await asked())).operationId).toBeTruthy()
})

test('what names directories of a host is an admin’s, also to take up again, and each denial is audited', async () => {
  const [operator, admin] = [await callerAs('operator'), await callerAs('admin')]
  const instanceId = InstanceId.parse((await insertTestInstance(it.database)).instanceId)
  const asked = {
    instanceId,
    database: 'shop',
    tableName: 'public.account',
    at: '2026-11-23T23:40:00Z',
    backupDirectory: '/srv/base',
    walDirectory: '/srv/wal',
  }
  const refused = 'session.role_too_low'
  expect(await codeOf(operator.flashback.restore(asked))).toBe(refused)
  const { operationId } = await admin.flashback.restore(asked)
  const { pool } = it.database
  const failed = (id: string) =>
    pool.query(`UPDATE operation SET state = 'failed', "endedAt" = now() WHERE id = $1`, [id])
  await failed(operationId)
  expect(await codeOf(operator.operation.retry({ operationId }))).toBe(refused)
  const again = await admin.operation.retry({ operationId })
  await failed(again.operationId)
  const { rows } = await pool.query(
    `SELECT action, outcome FROM audit_event WHERE "objectId" = $1 ORDER BY id`,
    [instanceId],
  )
  expect(rows).toEqual([
    { action: 'flashback.restore', outcome: 'denied' },
    { action: 'flashback.restore', outcome: 'allowed' },
    { action: 'operation.retry', outcome: 'denied' },
    { action: 'operation.retry', outcome: 'allowed' },
  ])
})
