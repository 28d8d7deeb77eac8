import { insertSettingChanges, insertSettingRevision, inTransaction, openIncident } from '@floe/db'
import { insertTestInstance } from '@floe/db/testing'
import { HIDDEN_VALUE, InstanceId, InstanceName, incidentKey } from '@floe/domain'
import { VALUE_NOT_KEPT } from '@floe/operations/submit'
import { TRPCError } from '@trpc/server'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { faultOf } from './faults'
import { withoutHiddenSettings } from './hidden-values'
import type { Incident } from './routers/incident/incident.types'
import { type ThrowawayConsole, throwawayConsole } from './testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterAll(() => it.close())

const SECRET = 'curl -u backup:hunter2 https://archive.example'
const changes = [{ name: 'archive_command', value: SECRET }]
const instance = async () => InstanceId.parse((await insertTestInstance(it.database)).instanceId)
const callerAs = async (role: 'viewer' | 'operator' | 'admin') =>
  it.callerOf((await it.signedIn(role)).headers)
const codeOf = async (asked: Promise<unknown>) => {
  const error = await asked.then(
    () => undefined,
    (e: unknown) => e,
  )
  return error instanceof TRPCError ? faultOf(error).code : 'it was not refused'
}
const ended = (operationId: string, state = 'succeeded') =>
  it.database.pool.query(`UPDATE operation SET state = $2, "endedAt" = now() WHERE id = $1`, [
    operationId,
    state,
  ])
const audit = async (action: string, objectId: string) =>
  (
    await it.database.pool.query(
      `SELECT outcome, detail FROM audit_event WHERE action = $1 AND "objectId" = $2 ORDER BY id`,
      [action, objectId],
    )
  ).rows as { outcome: string; detail: Record<string, unknown> }[]

test('settings that run programs are an admin’s, at every door, and the audit row names the class', async () => {
  const [operator, admin] = [await callerAs('operator'), await callerAs('admin')]
  const instanceId = await instance()
  const { rows } = await it.database.pool.query('SELECT "clusterId" FROM instance WHERE id = $1', [
    instanceId,
  ])
  const { clusterId } = rows[0]
  const refused = 'setting.runs_programs'
  expect(await codeOf(operator.setting.set({ scope: { instanceId }, changes }))).toBe(refused)
  expect(await codeOf(operator.setting.set({ scope: { clusterId }, changes }))).toBe(refused)
  expect(
    await codeOf(
      operator.instance.create({
        name: InstanceName.parse('with-library'),
        settings: { Shared_Preload_Libraries: 'x' },
      }),
    ),
  ).toBe(refused)
  expect(await audit('setting.set', instanceId)).toEqual([
    {
      outcome: 'denied',
      detail: { code: refused, class: 'runs-programs', programSettings: ['archive_command'] },
    },
  ])

  const { operationId } = await admin.setting.set({ scope: { instanceId }, changes })
  expect((await audit('setting.set', instanceId)).at(-1)).toMatchObject({
    outcome: 'allowed',
    detail: { class: 'runs-programs', programSettings: ['archive_command'] },
  })
  await ended(operationId, 'failed')
  expect(await codeOf(operator.operation.retry({ operationId }))).toBe(refused)
  // it may hold a password, and stays when the setting has long been another one
  await ended((await admin.operation.retry({ operationId })).operationId)
  await admin.instance.create({
    name: InstanceName.parse('with-archive'),
    settings: { archive_command: SECRET, work_mem: '8MB' },
  })
  const { events } = await admin.audit.list({ limit: 200 })
  const told = events.filter((e) => JSON.stringify(e.detail).includes(VALUE_NOT_KEPT)).map((e) => e.action)
  expect(told.sort()).toEqual(['instance.create', 'operation.retry', 'setting.set'])
  expect(JSON.stringify(events)).not.toContain('hunter2')
  expect(JSON.stringify(events.find((e) => e.action === 'instance.create'))).toContain('8MB')

  // what was changed past Floe may name one, too
  await it.database.pool.query('UPDATE instance SET observed = $2 WHERE id = $1', [
    instanceId,
    JSON.stringify({
      settingDrift: [{ name: 'restore_command', file: 'floe.conf', line: 3, was: null, is: SECRET }],
    }),
  ])
  expect(await codeOf(operator.setting.adopt({ instanceId }))).toBe(refused)
  expect(await codeOf(operator.setting.revert({ instanceId }))).toBe(refused)
  // all else stays an operator's
  await ended((await admin.setting.adopt({ instanceId })).operationId)
  await operator.setting.set({ scope: { instanceId }, changes: [{ name: 'work_mem', value: '8MB' }] })
})

test('a viewer is told no value that only superusers see, at no door', async () => {
  const [viewer, operator, admin] = [
    await callerAs('viewer'),
    await callerAs('operator'),
    await callerAs('admin'),
  ]
  const instanceId = await instance()
  const { operationId } = await admin.setting.set({
    scope: { instanceId },
    changes: [...changes, { name: 'work_mem', value: '8MB' }],
  })
  const { pool } = it.database
  await inTransaction(pool, async (tx) => {
    await insertSettingRevision(tx, operationId, {
      managed: { archive_command: 'false', work_mem: '8MB' },
      before: { archive_command: SECRET },
    })
    await insertSettingChanges(tx, operationId, [
      { name: 'archive_command', oldValue: null, newValue: SECRET, pendingRestart: false },
      { name: 'work_mem', oldValue: '4MB', newValue: '8MB', pendingRestart: false },
    ])
    await openIncident(tx, {
      key: incidentKey('setting-drift', instanceId),
      severity: 'warning',
      title: 'settings were changed past Floe',
      detail: `archive_command: ${SECRET}`,
      instanceId,
    })
  })
  await pool.query(
    `UPDATE operation SET state = 'failed', "endedAt" = now(), result = $2, fault = $3, message = $4 WHERE id = $1`,
    [
      operationId,
      JSON.stringify({ confirmed: [{ name: 'archive_command', newValue: SECRET }] }),
      JSON.stringify({
        code: 'setting.invalid_value',
        message: `setting "archive_command" does not accept the value "${SECRET}"`,
      }),
      `archive_command: (disabled) → ${SECRET}`,
    ],
  )
  await pool.query(`INSERT INTO operation_log ("operationId", text) VALUES ($1, $2)`, [
    operationId,
    `archive_command: (disabled) → ${SECRET}`,
  ])
  await pool.query('UPDATE instance SET observed = $2 WHERE id = $1', [
    instanceId,
    JSON.stringify({
      settingDrift: [
        { name: 'primary_conninfo', file: 'postgresql.auto.conf', line: 1, was: null, is: SECRET },
      ],
    }),
  ])
  const clusterId = (await pool.query('SELECT "clusterId" FROM instance WHERE id = $1', [instanceId])).rows[0]
    .clusterId
  const { incidentId } = (await operator.incident.list({ instanceId })).incidents[0] as Incident
  const watched = async (caller: typeof viewer) => {
    const events = (await caller.operation.watch({ operationId })) as AsyncIterable<unknown>
    for await (const event of events) return event
    return undefined
  }
  const doors = (caller: typeof viewer): Record<string, () => Promise<unknown>> => ({
    'setting.history': () => caller.setting.history({ scope: { instanceId } }),
    'setting.revisions': () => caller.setting.revisions({ scope: { instanceId } }),
    'setting.drift': () => caller.setting.drift({ scope: { instanceId } }),
    'setting.history of a cluster': () => caller.setting.history({ scope: { clusterId } }),
    'setting.revisions of a cluster': () => caller.setting.revisions({ scope: { clusterId } }),
    'operation.show': () => caller.operation.show({ operationId }),
    'operation.list': () => caller.operation.list({ instanceId }),
    'operation.watch': () => watched(caller),
    'incident.list': () => caller.incident.list({ instanceId }),
    'incident.show': () => caller.incident.show({ incidentId }),
  })
  for (const [door, ask] of Object.entries(doors(viewer))) {
    const told = JSON.stringify(await ask())
    expect([door, told.includes('hunter2'), told.includes(HIDDEN_VALUE)]).toEqual([door, false, true])
  }
  for (const [door, ask] of Object.entries(doors(operator)))
    expect([door, JSON.stringify(await ask()).includes('hunter2')]).toEqual([door, true])
  expect(JSON.stringify(await viewer.setting.history({ scope: { instanceId } }))).toContain('8MB')
})

test('the catalogue keeps its words and loses the values', () => {
  const setting = {
    name: 'primary_conninfo',
    value: SECRET,
    shown: SECRET,
    unit: null,
    context: 'sighup',
    category: 'Replication / Standby Servers',
    description: 'Sets the connection string to be used to connect to the sending server.',
    detail: 'See archive_command for more.',
    resetValue: SECRET,
    managedValue: null,
  }
  expect(withoutHiddenSettings({ settings: [setting] }).settings).toEqual([
    { ...setting, value: HIDDEN_VALUE, shown: HIDDEN_VALUE, resetValue: HIDDEN_VALUE },
  ])
  const ofCluster = { name: 'archive_command', values: [{ shown: SECRET, pending: SECRET }, null] }
  expect(withoutHiddenSettings(ofCluster).values).toEqual([
    { shown: HIDDEN_VALUE, pending: HIDDEN_VALUE },
    null,
  ])
})

test('what only an operator may ask is asked by the console’s own pages', async () => {
  const { cookie } = await it.signedIn('operator')
  const instanceId = await instance()
  const crossSite = await it.callerOf({
    cookie,
    'sec-fetch-site': 'cross-site',
    'sec-fetch-mode': 'navigate',
  })
  const ask = { scope: { instanceId }, changes: [{ name: 'work_mem', value: '8MB' }] }
  expect(await codeOf(crossSite.setting.check(ask))).toBe('session.cross_origin')
})
