import { randomUUID } from 'node:crypto'
import { insertTestInstance } from '@floe/db/testing'
import { InstanceId, operationRecords, orderedKinds } from '@floe/domain'
import { TRPCError } from '@trpc/server'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { ROWS_MAX } from './denial-rows'
import { faultOf } from './faults'
import { appRouter } from './router'
import { type ThrowawayConsole, throwawayConsole } from './testing/throwaway-console'

let it: ThrowawayConsole
let instanceId: InstanceId
let name: string
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
  const made = await insertTestInstance(it.database)
  instanceId = InstanceId.parse(made.instanceId)
  name = made.name
})
afterAll(() => it.close())

const refusal = async (asked: Promise<unknown>) => {
  const error = await asked.then(
    () => undefined,
    (e: unknown) => e,
  )
  if (!(error instanceof TRPCError)) throw new Error('it was not refused')
  return { code: error.code, fault: faultOf(error) }
}
const denials = async () => {
  const { rows } = await it.database.pool.query(
    `SELECT actor, action, "objectId" AS "objectId", detail->>'code' AS code FROM audit_event
      WHERE outcome = 'denied' ORDER BY id`,
  )
  return rows
}
const operations = async () =>
  (await it.database.pool.query('SELECT count(*)::int AS n FROM operation')).rows[0].n as number

const defined = appRouter._def.procedures as unknown as Record<
  string,
  { _def: { type: string; meta?: { role: string } } }
>
/** Every procedure of the router by kind, so that one added later is covered by the tests below. */
const procedures = (type: 'query' | 'mutation' | 'subscription') =>
  Object.entries(defined)
    .filter(([path, p]) => p._def.type === type && !path.startsWith('setup.'))
    .map(([path]) => path)

/** The least role that a procedure says it needs. */
const roleOf = (path: string) => defined[path]?._def.meta?.role

test('every operation that is only ordered has its procedure', () => {
  const missing = orderedKinds()
    .map((kind) => `${operationRecords[kind].order.noun}.${operationRecords[kind].order.verb}`)
    .filter((path) => !procedures('mutation').includes(path))
  expect(missing).toEqual([])
})

const inputs: Record<string, object> = {
  'instance.create': { name: 'made-by-viewer' },
  'instance.start': {},
  'instance.stop': {},
  'instance.restart': {},
  'instance.reload': {},
  'instance.requireTls': {},
  'instance.delete': { confirmName: 'x' },
  'setting.set': { changes: [{ name: 'work_mem', value: '4MB' }] },
  'keptAside.drop': { name: 'kept-aside-20260101T000000000Z-1', confirmName: 'x' },
  'retention.set': { kind: 'operation', keepSeconds: 1e6 },
  'webhook.add': { url: 'https://example.org/hook' },
  'webhook.remove': { webhookId: randomUUID() },
  'webhook.test': { webhookId: randomUUID() },
  'token.create': { name: 'ci', role: 'viewer' },
  'token.revoke': { tokenId: randomUUID() },
  'setting.rollBack': { revisionId: '1' },
  'setting.adopt': {},
  'setting.revert': {},
  'controlDatabase.acceptRestored': { as: 'reported' },
  'incident.acknowledge': { incidentId: randomUUID() },
  'operation.cancel': { operationId: randomUUID() },
  'operation.retry': { operationId: randomUUID() },
}
const call = (caller: unknown, path: string) => {
  const [noun, verb] = path.split('.') as [string, string]
  const input = path.startsWith('operation.') || path === 'instance.create' ? {} : { instanceId }
  return (caller as Record<string, Record<string, (input: unknown) => Promise<unknown>>>)[noun]?.[verb]?.({
    ...input,
    ...inputs[path],
  }) as Promise<unknown>
}

test('a viewer may read and change nothing; every attempt is audited', async () => {
  const viewer = await it.signedIn('viewer')
  const caller = await it.callerOf(viewer.headers)
  expect((await caller.instance.list()).instances.map((i) => i.name)).toContain(name)
  const before = (await denials()).length
  // one's own account is everybody's to change
  const all = procedures('mutation').filter((path) => !path.startsWith('account.'))
  expect(all.length).toBeGreaterThanOrEqual(9)
  for (const path of all) {
    const { code, fault } = await refusal(call(caller, path))
    expect([path, code, fault.code]).toEqual([path, 'FORBIDDEN', 'session.role_too_low'])
  }
  const rows = (await denials()).slice(before)
  // beyond the bound they are counted (denial-rows.test.ts)
  expect(rows.map((r) => r.action)).toEqual(all.slice(0, ROWS_MAX))
  expect(rows.every((r) => r.actor === viewer.userId)).toBe(true)
  expect(rows.find((r) => r.action === 'instance.stop')?.objectId).toBe(instanceId)
  expect(await operations()).toBe(0)
})

test('an operator may not call what needs an admin', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const all = [...procedures('query'), ...procedures('mutation')].filter((path) => roleOf(path) === 'admin')
  expect(all).toEqual(expect.arrayContaining(['audit.list', 'host.revoke', 'retention.set', 'webhook.add']))
  for (const path of all) {
    const { code, fault } = await refusal(call(caller, path))
    expect([path, code, fault.code]).toEqual([path, 'FORBIDDEN', 'session.role_too_low'])
  }
})

test('without a session nothing is answered but set-up, and attempted changes are audited', async () => {
  const caller = await it.callerOf()
  const before = (await denials()).length
  for (const path of [...procedures('query'), ...procedures('mutation')]) {
    const { code, fault } = await refusal(call(caller, path))
    expect([path, code, fault.code]).toEqual([path, 'UNAUTHORIZED', 'session.missing'])
  }
  expect((await denials()).slice(before).map((r) => r.action)).toEqual(
    procedures('mutation').slice(0, ROWS_MAX),
  )
  expect(await caller.setup.status()).toMatchObject({ link: null })
})

test('what one actor is refused writes a bounded number of rows', async () => {
  const viewer = await it.signedIn('viewer')
  const caller = await it.callerOf(viewer.headers)
  const before = (await denials()).length
  for (let n = 0; n < 70; n++) await refusal(caller.instance.stop({ instanceId }))
  expect((await denials()).slice(before).filter((row) => row.actor === viewer.userId)).toHaveLength(60)
})

test('text that PostgreSQL cannot store is bad input, wherever it stands', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  for (const asked of [
    caller.cluster.show({ name: 'a\0b' }),
    caller.setting.history({ scope: { instanceId }, cursor: '1\0' } as never),
    caller.operation.list({ cursor: '1_\0' }),
    caller.instance.create({ name: 'fine', idempotencyKey: 'key\0', settings: { x: '\ud800' } } as never),
    caller.instance.create({ name: 'fine', settings: { 'x\0': 'y' } } as never),
    (await it.callerOf()).setup.status({ token: '\0' }),
  ]) {
    const refused = await refusal(asked)
    expect(refused).toMatchObject({ code: 'BAD_REQUEST', fault: { code: 'input.invalid' } })
    expect(refused.fault.detail).toContain('U+0000')
  }
})

test('a change by cookie is refused when another site’s page sent it', async () => {
  const { cookie } = await it.signedIn('operator')
  const attempts: Record<string, string>[] = [
    { cookie, 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
    { cookie, 'sec-fetch-site': 'same-site', origin: 'http://other.example' },
    { cookie, origin: 'https://evil.example' },
    { cookie },
  ]
  for (const headers of attempts) {
    const caller = await it.callerOf(headers)
    expect((await refusal(caller.instance.stop({ instanceId }))).fault.code).toBe('session.cross_origin')
  }
  expect(await operations()).toBe(0)
})

test('an operator changes; intent, operation and audit row are there together', async () => {
  const operator = await it.signedIn('operator')
  const caller = await it.callerOf(operator.headers)
  const { operationId } = await caller.instance.stop({ instanceId })
  const { rows } = await it.database.pool.query(
    `SELECT i.intent, o.kind, o.actor, a.action, a.outcome FROM operation o JOIN instance i ON i.id = o."instanceId"
       JOIN audit_event a ON a.detail->>'operationId' = o.id::text WHERE o.id = $1`,
    [operationId],
  )
  expect(rows).toEqual([
    {
      intent: 'stopped',
      kind: 'stop-instance',
      actor: operator.userId,
      action: 'instance.stop',
      outcome: 'allowed',
    },
  ])
  const shown = await caller.operation.show({ operationId })
  expect(shown.operation).toMatchObject({
    kind: 'stop-instance',
    state: 'queued',
    cancellable: true,
    instanceName: name,
  })

  // a second change meets the first one, and is told which it is
  const conflict = await refusal(caller.instance.start({ instanceId }))
  expect(conflict).toMatchObject({ code: 'CONFLICT', fault: { code: 'operation.conflict' } })
  expect(conflict.fault.detail).toContain(operationId)
  await caller.operation.cancel({ operationId })
  expect((await caller.operation.show({ operationId })).operation.state).toBe('cancelled')
})

test('the command line’s token is an owner; a wrong or revoked one is nobody, also beside a valid cookie', async () => {
  const headers = await it.token()
  const caller = await it.callerOf(headers)
  expect(await caller.account.me()).toMatchObject({ kind: 'token', role: 'owner' })
  const { cookie } = await it.signedIn('owner')
  const wrong = await it.callerOf({ cookie, authorization: 'Bearer not-a-token-of-this-installation' })
  expect((await refusal(wrong.account.me())).fault.code).toBe('session.missing')
  await it.database.pool.query(`UPDATE api_token SET "revokedAt" = now()`)
  expect((await refusal((await it.callerOf(headers)).account.me())).fault.code).toBe('session.missing')
})

test('bad input is told field by field, and a missing thing by name', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const bad = await refusal(caller.instance.create({ name: 'Not a name' as never }))
  expect(bad).toMatchObject({ code: 'BAD_REQUEST', fault: { code: 'input.invalid' } })
  expect(bad.fault.detail).toContain('name: must start with a letter')
  const missing = await refusal(caller.instance.show({ instanceId: InstanceId.parse(randomUUID()) }))
  expect(missing).toMatchObject({ code: 'NOT_FOUND', fault: { code: 'instance.not_found' } })
})

test('what its record says is an admin’s is refused to an operator, whichever way it is submitted', async () => {
  const operator = await it.signedIn('operator')
  const caller = await it.callerOf(operator.headers)
  const of = { instanceId, database: 'app' }
  const backup = { backupDirectory: '/srv/base', walDirectory: '/srv/wal' }
  const result = { ...of, result: 16_400, resultName: 'public.then' }
  const before = await operations()
  for (const [ask, action] of [
    [() => caller.flashback.export(result), 'flashback.export'],
    [
      () => caller.flashback.restore({ ...of, ...backup, tableName: 'public.t', at: '2026-11-23T23:40:00Z' }),
      'flashback.restore',
    ],
    [
      () =>
        caller.flashback.merge({
          ...result,
          tableName: 'public.t',
          insertMissing: true,
          restoreChanged: false,
          deleteAdded: false,
          condition: 'id > 7',
        }),
      'flashback.merge',
    ],
  ] as const) {
    expect(await refusal(ask())).toMatchObject({ code: 'FORBIDDEN', fault: { code: 'session.role_too_low' } })
    expect((await denials()).at(-1)).toMatchObject({
      actor: operator.userId,
      action,
      objectId: instanceId,
      code: 'session.role_too_low',
    })
  }
  expect(await operations()).toBe(before)
})
