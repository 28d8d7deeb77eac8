import { randomUUID } from 'node:crypto'
import { LeaseLostError, leaseOperations, listAgents, listOperations, showOperation } from '@floe/db'
import type { OperationInput } from '@floe/domain'
import { type AgentTasks, advanceOperation } from '@floe/operations'
import { cancelOperation, submitOperation } from '@floe/operations/submit'
import { waitUntil } from '@floe/testkit'
import { afterEach, expect, inject, test } from 'vitest'
import { Agents } from './agents'
import { actor, controllersFixture } from './testing/controllers-fixture'

let fixture: Awaited<ReturnType<typeof controllersFixture>>
afterEach(() => fixture.remove())

const create = (name: string) =>
  submitOperation(fixture.db.as.web, {
    kind: 'create-instance',
    input: { instanceId: randomUUID(), name } as OperationInput<'create-instance'>,
    hostId: fixture.host.hostId,
    actor,
  })

test('of 200 operations under two controllers every step starts its task once, and all succeed', async () => {
  fixture = await controllersFixture(inject('engineConnectionString'))
  for (let i = 0; i < 100; i++) await create(`i-${i}`)
  fixture.start()
  fixture.start()
  for (let i = 100; i < 200; i++) await create(`i-${i}`)
  await waitUntil(
    'all operations ended',
    async () =>
      (await listOperations(fixture.db.pool, { states: ['queued', 'running', 'cancelling'] })).length === 0,
    50_000,
    200,
  )
  const operations = await listOperations(fixture.db.pool, { limit: 1_000 })
  expect(operations).toHaveLength(200)
  expect(operations.filter((o) => o.state !== 'succeeded')).toEqual([])
  // Two steps each, one attempt each. Calls are not counted: one whose answer came late, or was on its way when the lease
  // changed hands, is asked again, and its key makes it begin nothing (the tests below).
  expect(fixture.host.tasks.size).toBe(400)
  expect([...fixture.host.tasks.values()].every((task) => task.input.key.attempt === 1)).toBe(true)
  const owners = await fixture.db.pool.query('SELECT "leaseOwner", count(*)::int FROM operation GROUP BY 1')
  expect(owners.rows).toHaveLength(2)
})

/** Two leases of one operation, as when a controller stood still for longer than its lease: the older one's start is kept back. */
async function withOneStartOnItsWay(operationId: string) {
  const agents = new Agents({ authority: fixture.authority.certificate, identity: () => fixture.identity })
  agents.place(await listAgents(fixture.db.pool))
  const tasks = agents.of(fixture.host.hostId).tasks
  let arrive = () => {}
  const arrival = new Promise<void>((resolve) => {
    arrive = resolve
  })
  let leaves = () => {}
  const leaving = new Promise<void>((resolve) => {
    leaves = resolve
  })
  const late: AgentTasks = {
    ...tasks,
    startTask: async (input) => {
      leaves()
      await arrival
      return tasks.startTask(input)
    },
  }
  const ports = (agent: AgentTasks) => ({
    pool: fixture.db.pool,
    agentOf: () => agent,
    now: () => new Date(),
    log: () => {},
  })
  const lease = () =>
    waitUntil('a lease', async () => {
      const holds = await leaseOperations(fixture.db.pool, {
        owner: 'tester',
        leaseMs: 1,
        limit: 1,
        busyHostIds: [],
      })
      return holds.find((hold) => hold.operationId === operationId)
    })
  const older = await lease()
  await advanceOperation(older, ports(late))
  const olderPass = advanceOperation(older, ports(late))
  olderPass.catch(() => {})
  await leaving
  const newer = await lease()
  return {
    pass: () => advanceOperation(newer, ports(tasks)),
    arrive: () => {
      arrive()
      return olderPass
    },
    close: () => agents.close(),
  }
}
const startCallsOf = (operationId: string) => fixture.host.startCalls.get(`${operationId}/create/1`)

test('a start on its way when the lease changed hands is called twice and begins once; the older lease notes nothing', async () => {
  fixture = await controllersFixture(inject('engineConnectionString'))
  const { operationId } = await create('twice-called')
  const both = await withOneStartOnItsWay(operationId)
  fixture.host.held = true
  await both.pass()
  expect(startCallsOf(operationId)).toBe(1)
  await expect(both.arrive()).rejects.toThrow(LeaseLostError)
  expect(startCallsOf(operationId)).toBe(2)
  expect([...fixture.host.tasks.keys()]).toEqual([`${operationId}/create/1`])
  both.close()
  fixture.host.held = false
  fixture.start()
  await waitUntil(
    'it succeeded',
    async () => (await showOperation(fixture.db.pool, operationId))?.state === 'succeeded',
  )
  expect([...fixture.host.tasks.keys()]).toEqual([`${operationId}/create/1`, `${operationId}/start/1`])
})

test('a start that arrives after a newer lease has cancelled it begins nothing', async () => {
  fixture = await controllersFixture(inject('engineConnectionString'))
  const { operationId } = await create('cancelled-first')
  const both = await withOneStartOnItsWay(operationId)
  await cancelOperation(fixture.db.as.web, { operationId, actor })
  // what may have been begun is undone first
  await waitUntil('it is cancelled', async () => {
    await both.pass()
    return (await showOperation(fixture.db.pool, operationId))?.state === 'cancelled'
  })
  await both.arrive().catch(() => {})
  both.close()
  expect(startCallsOf(operationId)).toBe(1)
  expect([...fixture.host.tasks.keys()]).toEqual([`${operationId}/undo.remove/1`])
})

test('an operation shows its steps, progress, result and log, and its instance is running when it has succeeded', async () => {
  fixture = await controllersFixture(inject('engineConnectionString'))
  fixture.start()
  const { operationId, instanceId } = await create('shown')
  const operation = await waitUntil('it succeeded', async () => {
    const seen = await showOperation(fixture.db.pool, operationId)
    return seen?.state === 'succeeded' ? seen : null
  })
  expect(operation.steps.map((s) => [s.name, s.state, s.attempt])).toEqual([
    ['create', 'succeeded', 1],
    ['start', 'succeeded', 1],
    ['observe', 'succeeded', 1],
  ])
  expect(operation).toMatchObject({ progress: 1, result: { port: 20_001 }, fault: null })
  const { rows } = await fixture.db.pool.query('SELECT state, port FROM instance WHERE id = $1', [instanceId])
  expect(rows).toEqual([{ state: 'running', port: 20_001 }])
  const log = await fixture.db.pool.query(
    'SELECT step, text FROM operation_log WHERE "operationId" = $1 ORDER BY id',
    [operationId],
  )
  expect(log.rows).toMatchInlineSnapshot(`
    [
      {
        "step": null,
        "text": "running: a controller leased it",
      },
      {
        "step": "create",
        "text": "Create the data directory",
      },
      {
        "step": "create",
        "text": "working on create-instance",
      },
      {
        "step": "create",
        "text": "finished",
      },
      {
        "step": "start",
        "text": "Start the engine",
      },
      {
        "step": "start",
        "text": "working on start-instance",
      },
      {
        "step": "start",
        "text": "finished",
      },
      {
        "step": "observe",
        "text": "Wait until it runs",
      },
      {
        "step": null,
        "text": "succeeded: its last step is done",
      },
    ]
  `)
})
