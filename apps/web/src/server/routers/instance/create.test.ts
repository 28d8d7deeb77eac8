import { randomUUID } from 'node:crypto'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { registerHost } from '@floe/db'
import { InstanceName } from '@floe/domain'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
  await registerHost(it.database.pool, { hostId: randomUUID(), name: 'h', agentUrl: 'https://127.0.0.1:1' })
})
afterAll(() => it.close())

const count = async () =>
  (await it.database.pool.query('SELECT count(*)::int AS n FROM instance')).rows[0].n as number

test('a repeated create with the same key makes one instance and gives the same answer', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const input = { name: InstanceName.parse('demo'), idempotencyKey: randomUUID() }
  const first = await caller.instance.create(input)
  expect(first.password).toMatch(/^[A-Za-z0-9]{24}$/)
  expect(await caller.instance.create(input)).toEqual(first)
  const both = await Promise.all([1, 2, 3].map(() => caller.instance.create(input)))
  for (const again of both) expect(again).toEqual(first)
  expect(await count()).toBe(1)
})

test('two creates at the same moment with one key make one instance', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const before = await count()
  const input = { name: InstanceName.parse('at-once'), idempotencyKey: randomUUID() }
  const answers = await Promise.all([1, 2, 3, 4].map(() => caller.instance.create(input)))
  expect(new Set(answers.map((a) => a.instanceId)).size).toBe(1)
  expect(await count()).toBe(before + 1)
})

test('a taken name is refused by name', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const name = InstanceName.parse('taken')
  await caller.instance.create({ name })
  await expect(caller.instance.create({ name })).rejects.toThrow('instance "taken" already exists')
})

test('settings that are known to be refused begin nothing: no instance, no operation, and the name stays free', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const name = InstanceName.parse('refused')
  const before = await count()
  for (const [setting, message] of [
    ['Port', 'setting "port" is set by Floe'],
    ['shared buffers', 'setting "shared buffers" does not exist'],
  ] as const)
    await expect(caller.instance.create({ name, settings: { [setting]: '3000' } })).rejects.toThrow(message)
  expect(await count()).toBe(before)
  expect((await caller.operation.list({})).operations.filter((o) => o.instanceName === name)).toEqual([])
})

test('who has a password already sends its verifier, and is told none', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const input = {
    name: InstanceName.parse('own-password'),
    passwordVerifier: scramVerifier('correct horse'),
    idempotencyKey: randomUUID(),
  }
  const first = await caller.instance.create(input)
  expect(first.password).toBeNull()
  expect(await caller.instance.create(input)).toEqual(first)
  const { rows } = await it.database.pool.query('SELECT input FROM operation WHERE id = $1', [
    first.operationId,
  ])
  expect(rows[0].input.ownerPasswordVerifier).toBe(input.passwordVerifier)
  await expect(
    caller.instance.create({ name: InstanceName.parse('plain'), passwordVerifier: 'correct horse' }),
  ).rejects.toThrow()
})

test('the password is stored nowhere; the operation carries the verifier and shows it to nobody', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const { password, operationId } = await caller.instance.create({ name: InstanceName.parse('secret') })
  const { rows: tables } = await it.database.pool.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
      WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
  )
  expect(tables.length).toBeGreaterThan(10)
  for (const { name } of tables) {
    const { rows } = await it.database.pool.query(
      `SELECT 1 FROM ${name} t WHERE t::text LIKE '%' || $1 || '%'`,
      [password],
    )
    expect([name, rows.length]).toEqual([name, 0])
  }
  const { rows } = await it.database.pool.query('SELECT input FROM operation WHERE id = $1', [operationId])
  expect(rows[0].input.ownerPasswordVerifier).toMatch(/^SCRAM-SHA-256\$/)
  expect(JSON.stringify(await caller.operation.show({ operationId }))).not.toContain('SCRAM')
})
