import { randomUUID } from 'node:crypto'
import { listOperations, showOperation } from '@floe/db'
import type { OperationInput } from '@floe/domain'
import { submitOperation } from '@floe/operations/submit'
import { waitUntil } from '@floe/testkit'
import { afterEach, expect, inject, test } from 'vitest'
import { actor, benchOfControllers } from './testing/bench-of-controllers'

let bench: Awaited<ReturnType<typeof benchOfControllers>>
afterEach(() => bench.remove())

const create = (name: string) =>
  submitOperation(bench.db, {
    kind: 'create-instance',
    input: { instanceId: randomUUID(), name } as OperationInput<'create-instance'>,
    hostId: bench.host.hostId,
    actor,
  })

test('of 200 operations under two controllers every step starts its task once, and all succeed', async () => {
  bench = await benchOfControllers(inject('engineConnectionString'))
  for (let i = 0; i < 100; i++) await create(`i-${i}`)
  bench.start()
  bench.start()
  for (let i = 100; i < 200; i++) await create(`i-${i}`)
  await waitUntil(
    'all operations ended',
    async () =>
      (await listOperations(bench.db.pool, { states: ['queued', 'running', 'cancelling'] })).length === 0,
    50_000,
    200,
  )
  const operations = await listOperations(bench.db.pool, { limit: 1_000 })
  expect(operations).toHaveLength(200)
  expect(operations.filter((o) => o.state !== 'succeeded')).toEqual([])
  // two steps each, one attempt each
  expect(bench.host.tasks.size).toBe(400)
  expect(bench.host.startedTwice).toEqual([])
  expect([...bench.host.tasks.values()].every((task) => task.input.key.attempt === 1)).toBe(true)
  const owners = await bench.db.pool.query('SELECT "leaseOwner", count(*)::int FROM operation GROUP BY 1')
  expect(owners.rows).toHaveLength(2)
})

test('an operation shows its steps, progress, result and log, and its instance is running when it has succeeded', async () => {
  bench = await benchOfControllers(inject('engineConnectionString'))
  bench.start()
  const { operationId, instanceId } = await create('shown')
  const operation = await waitUntil('it succeeded', async () => {
    const seen = await showOperation(bench.db.pool, operationId)
    return seen?.state === 'succeeded' ? seen : null
  })
  expect(operation.steps.map((s) => [s.name, s.state, s.attempt])).toEqual([
    ['create', 'succeeded', 1],
    ['start', 'succeeded', 1],
    ['observe', 'succeeded', 1],
  ])
  expect(operation).toMatchObject({ progress: 1, result: { port: 20_001 }, fault: null })
  const { rows } = await bench.db.pool.query('SELECT state, port FROM instance WHERE id = $1', [instanceId])
  expect(rows).toEqual([{ state: 'running', port: 20_001 }])
  const log = await bench.db.pool.query(
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
        "text": "See it running",
      },
      {
        "step": null,
        "text": "succeeded: its last step is done",
      },
    ]
  `)
})
