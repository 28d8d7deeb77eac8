import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import {
  insertWebhook,
  LeaseLostError,
  leaseOperations,
  listOperations,
  listWebhooks,
  openIncident,
  showHost,
  showOperation,
} from '@floe/db'
import { startTestEngine } from '@floe/db/testing'
import { type OperationInput, secretFiles } from '@floe/domain'
import { advanceOperation } from '@floe/operations'
import { submitOperation } from '@floe/operations/submit'
import { waitUntil } from '@floe/testkit'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import { ControllerProcess, makeControllerHome } from './testing/controller-process'
import { actor, controllersFixture, keptLog } from './testing/controllers-fixture'

let fixture: Awaited<ReturnType<typeof controllersFixture>>
let home: ReturnType<typeof makeControllerHome>
const processes: ControllerProcess[] = []

beforeEach(async () => {
  fixture = await controllersFixture(inject('engineConnectionString'))
  home = makeControllerHome({
    connectionString: fixture.db.as.controller.connectionString,
    authority: fixture.authority,
    identity: fixture.identity,
    host: { hostId: fixture.host.hostId, name: 'this-host', agentUrl: fixture.host.url },
  })
})
afterEach(async () => {
  for (const process of processes.splice(0)) await process.end('SIGKILL')
  await fixture.remove()
  home.remove()
})

function startProcess(): ControllerProcess {
  const process = new ControllerProcess(inject('controllerBundle'), home.path)
  processes.push(process)
  return process
}

const create = (name: string) =>
  submitOperation(fixture.db.as.web, {
    kind: 'create-instance',
    input: { instanceId: randomUUID(), name } as OperationInput<'create-instance'>,
    actor,
  })
/** A controller in a process of its own also has the host checked: that is no task of an operation. */
const tasks = () => [...fixture.host.tasks.values()].filter((task) => task.input.task.kind !== 'check-host')
const stateOf = async (operationId: string) => (await showOperation(fixture.db.pool, operationId))?.state

test('kill -9 of a controller in the middle of operations: another one finishes each, no task starts twice', async () => {
  const controller = startProcess()
  await waitUntil('the controller started', () => controller.output.includes('controller.started'))
  fixture.host.held = true
  const submitted = await Promise.all(['a', 'b', 'c', 'd', 'e'].map(create))
  await waitUntil('all tasks run', () => tasks().length === 5)
  await controller.end('SIGKILL')
  fixture.host.held = false
  const log = keptLog()
  const other = fixture.start({ leaseMs: 60_000, renewMs: 400 }, log)
  for (const { operationId } of submitted)
    await waitUntil('it succeeded', async () => (await stateOf(operationId)) === 'succeeded')
  expect(log.lines.some((line) => line.event === 'controller.took_over')).toBe(true)
  expect(tasks()).toHaveLength(10)
  const { rows } = await fixture.db.pool.query('SELECT DISTINCT "leaseOwner" AS owner FROM operation')
  expect(rows).toEqual([{ owner: other.owner }])
})

test('kill -9 between sending a message and noting that it was taken: it is sent again, under the same id', async () => {
  const ids: string[] = []
  const receiver = createServer((request, response) => {
    request.resume().on('end', () => {
      ids.push(String(request.headers['webhook-id']))
      // the first has arrived, and its sender dies before it hears so
      if (ids.length > 1) response.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = receiver.address() as { port: number }
    await insertWebhook(fixture.db.pool, { url: `http://127.0.0.1:${port}/`, actor })
    const controller = startProcess()
    await openIncident(fixture.db.pool, {
      key: 'host-offline:k',
      severity: 'warning',
      title: 'told across a kill',
    })
    await waitUntil('it has arrived', () => ids.length === 1)
    await controller.end('SIGKILL')
    expect((await listWebhooks(fixture.db.pool))[0]?.last?.deliveredAt).toBeNull()
    fixture.start()
    await waitUntil('it is noted as taken', async () => {
      const [webhook] = await listWebhooks(fixture.db.pool)
      return webhook?.waiting === 0 && webhook.last?.deliveredAt
    })
    expect(ids[1]).toBe(ids[0])
  } finally {
    receiver.closeAllConnections()
    await new Promise((resolve) => receiver.close(resolve))
  }
})

test('kill -9 again and again under load loses no operation and starts no task twice', async () => {
  fixture.host.taskMs = 60
  const wanted = 24
  const submitting = (async () => {
    for (let i = 0; i < wanted; i++) await create(`i-${i}`)
  })()
  for (let kills = 0; kills < 4; kills++) {
    const ended = (await listOperations(fixture.db.pool, { states: ['succeeded'], limit: 100 })).length
    const controller = startProcess()
    await waitUntil(
      'it got something done',
      async () =>
        (await listOperations(fixture.db.pool, { states: ['succeeded'], limit: 100 })).length > ended,
      15_000,
      25,
    )
    await controller.end('SIGKILL')
  }
  await submitting
  fixture.start()
  await waitUntil(
    'all succeeded',
    async () =>
      (await listOperations(fixture.db.pool, { states: ['succeeded'], limit: 100 })).length === wanted,
    30_000,
  )
  // a start whose answer the killed one did not live to see may be asked again; its key keeps it from starting
  expect(tasks()).toHaveLength(wanted * 2)
  expect(tasks().every((task) => task.status.key.attempt === 1)).toBe(true)
})

test('a controller with an older lease can write nothing: not a step, not a state, not a log line', async () => {
  const { operationId } = await create('fenced')
  const lease = () =>
    leaseOperations(fixture.db.pool, { owner: 'old', leaseMs: 1, limit: 1, busyHostIds: [] }).then(
      (holds) => holds[0],
    )
  const old = await waitUntil('a lease', lease)
  const newer = await waitUntil('the next lease', lease)
  expect(BigInt(newer.token)).toBeGreaterThan(BigInt(old.token))
  const ports = {
    pool: fixture.db.pool,
    agentOf: () => {
      throw new Error('an older lease must not reach the agent')
    },
    now: () => new Date(),
    log: () => {},
  }
  await expect(advanceOperation(old, ports)).rejects.toThrow(LeaseLostError)
  expect(await showOperation(fixture.db.pool, operationId)).toMatchObject({ state: 'queued', steps: [] })
  await advanceOperation(newer, ports)
  expect(await showOperation(fixture.db.pool, operationId)).toMatchObject({ state: 'running' })
  await expect(advanceOperation(old, ports)).rejects.toThrow(LeaseLostError)
})

test('SIGTERM ends a controller in order: its leases are free at once', async () => {
  const controller = startProcess()
  await waitUntil(
    'the host is seen',
    async () => (await showHost(fixture.db.pool, fixture.host.hostId))?.observedAt,
  )
  fixture.host.held = true
  const { operationId } = await create('handed-over')
  await waitUntil('it runs', async () => (await stateOf(operationId)) === 'running')
  const asked = Date.now()
  await controller.end('SIGTERM')
  expect(controller.child.exitCode).toBe(0)
  expect(Date.now() - asked).toBeLessThan(8_000)
  expect(controller.output).toContain('controller.stopped')
  const free = await fixture.db.pool.query(
    `SELECT (SELECT count(*)::int FROM lease WHERE name LIKE 'observe:%' AND "expiresAt" > clock_timestamp())
          + (SELECT count(*)::int FROM operation WHERE "leaseExpiresAt" > clock_timestamp()) AS held`,
  )
  expect(free.rows).toEqual([{ held: 0 }])
})

test('the controller makes the row of its own host, and says what is wrong with a broken FLOE_HOME', async () => {
  startProcess()
  await waitUntil('the row is there', async () => {
    const host = await showHost(fixture.db.pool, fixture.host.hostId)
    return host?.name === 'this-host' && host.state === 'online'
  })
  rmSync(join(home.path, 'secrets', secretFiles.controllerIdentity))
  const controller = startProcess()
  await once(controller.child, 'exit')
  expect(controller.child.exitCode).toBe(1)
  expect(controller.output).toContain('could not read "')
  expect(controller.output).toContain(secretFiles.controllerIdentity)
})

test('a control database that is killed and comes back: the controller says so, waits, and loses nothing', async () => {
  const engine = await startTestEngine()
  const own = await controllersFixture(engine.connectionString)
  try {
    const log = keptLog()
    own.start(undefined, log)
    await waitUntil('started', () => log.lines.some((line) => line.event === 'controller.started'))
    own.host.held = true
    const { operationId } = await submitOperation(own.db.as.web, {
      kind: 'create-instance',
      input: { instanceId: randomUUID(), name: 'patient' } as OperationInput<'create-instance'>,
      actor,
    })
    await waitUntil('its task runs', () => own.host.tasks.size === 1)
    await engine.stop('immediate')
    await waitUntil('it says so', () => log.lines.some((line) => line.event === 'database.unreachable'))
    // the host works on while nobody can write down what it did
    own.host.held = false
    await engine.start()
    await waitUntil(
      'it goes on',
      async () => (await showOperation(own.db.pool, operationId).catch(() => null))?.state === 'succeeded',
      30_000,
    )
    expect(log.lines.some((line) => line.event === 'database.reachable')).toBe(true)
    // its two steps, one attempt each
    expect(own.host.tasks.size).toBe(2)
  } finally {
    await own.remove()
    await engine.remove()
  }
})
