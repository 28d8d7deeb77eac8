import { randomUUID } from 'node:crypto'
import type { TaskKey, TaskStatus } from '@floe/agent-contract'
import {
  insertStandby,
  leaseOperations,
  listIncidents,
  listSettingChanges,
  listSettingRevisions,
  readOperationLog,
  showInstance,
  showOperation,
} from '@floe/db'
import { createTestDatabase, insertTestInstance, type TestDatabase } from '@floe/db/testing'
import { type Fault, fault, type OperationKind, operationTransitions } from '@floe/domain'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { type Advanced, advanceOperation } from './advance'
import type { AgentTasks } from './step'
import { cancelOperation, retryOperation, submitOperation } from './submit'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
})
afterAll(() => db.drop())

const actor = { id: 'user-1', name: 'Ada' }
const walked = new Set<string>()

/** Tasks in the test's hands: what `answers` says of a step is what the agent says. */
class Tasks implements AgentTasks {
  readonly started: string[] = []
  answers: Record<string, Partial<TaskStatus> | Fault> = {}
  ignoreCancel = false
  #of(key: TaskKey): TaskStatus {
    const id = `${key.step}#${key.attempt}`
    const blank = {
      key,
      progress: null,
      message: null,
      log: [],
      result: null,
      fault: null,
      startedAt: null,
      endedAt: null,
    }
    const answer = this.answers[id] ?? this.answers[key.step]
    if (answer && 'code' in answer) throw fault(answer.code, answer.message)
    if (!this.started.includes(id)) return { ...blank, state: 'not-started' }
    return { ...blank, state: 'running', ...answer }
  }
  async startTask({ key }: { key: TaskKey }) {
    const id = `${key.step}#${key.attempt}`
    if (!this.started.includes(id)) this.started.push(id)
    return this.#of(key)
  }
  async checkTask({ key }: { key: TaskKey }) {
    return this.#of(key)
  }
  async cancelTask(key: TaskKey) {
    if (!this.ignoreCancel) this.answers[key.step] = { state: 'cancelled' }
    return this.#of(key)
  }
}

let tasks: Tasks
let clock: Date
beforeEach(() => {
  tasks = new Tasks()
  clock = new Date()
})

async function submit(kind: OperationKind, input: object = {}) {
  const instance = await insertTestInstance(db)
  const submitted = await submitOperation(db.as.web, {
    kind,
    input: { instanceId: instance.instanceId, ...input } as never,
    actor,
  })
  return { ...instance, operationId: submitted.operationId }
}

const hold = async (operationId: string) => {
  const holds = await leaseOperations(db.as.controller.pool, {
    owner: 'test',
    leaseMs: 60_000,
    limit: 1_000,
    busyHostIds: [],
  })
  const found = holds.find((h) => h.operationId === operationId)
  if (!found) throw new Error('not leased')
  return found
}

/** One pass, noting the edge it walked. */
async function pass(h: Awaited<ReturnType<typeof hold>>): Promise<Advanced> {
  const from = (await showOperation(db.pool, h.operationId))?.state
  const advanced = await advanceOperation(h, {
    pool: db.as.controller.pool,
    agentOf: () => tasks,
    now: () => clock,
    log: () => {},
  })
  const to = (await showOperation(db.pool, h.operationId))?.state
  if (from !== to) walked.add(`${from} → ${to}`)
  return advanced
}

/** Passes until the operation ended or the passes are used up. */
async function passes(h: Awaited<ReturnType<typeof hold>>, most = 10): Promise<Advanced> {
  let advanced: Advanced = { ended: null, pauseMs: 0 }
  for (let i = 0; i < most && advanced.ended === null; i++) advanced = await pass(h)
  return advanced
}

const reloaded = { state: 'succeeded', result: { pendingRestart: [] } } as const

test('queued → running → succeeded: planned once, started once, its result and log kept', async () => {
  const { operationId } = await submit('reload-instance')
  const h = await hold(operationId)
  await passes(h, 4)
  expect(tasks.started).toEqual(['reload#1'])
  tasks.answers.reload = { ...reloaded, log: [{ seq: 1, at: clock.getTime(), text: 'reloaded' }] }
  expect(await passes(h)).toEqual({ ended: 'succeeded' })
  expect(await showOperation(db.pool, operationId)).toMatchObject({
    progress: 1,
    result: { pendingRestart: [] },
  })
  const log = await readOperationLog(db.pool, { operationId })
  expect(log.map((line) => line.text)).toEqual([
    'running: a controller leased it',
    'Reload the configuration',
    'reloaded',
    'succeeded: its last step is done',
  ])
  // another pass over an ended operation changes nothing
  expect(await pass(h)).toEqual({ ended: 'succeeded' })
})

test('a start that an earlier call forestalled, of a cluster seen otherwise, is followed and does not fail the step', async () => {
  const { operationId } = await submit('reload-instance')
  const h = await hold(operationId)
  const forestalled = tasks.startTask.bind(tasks)
  tasks.startTask = async (input) => {
    await forestalled(input)
    throw fault('task.key_reused', 'a different task was started with this key')
  }
  await passes(h, 4)
  expect((await showOperation(db.pool, operationId))?.state).toBe('running')
  tasks.answers.reload = reloaded
  expect(await passes(h)).toEqual({ ended: 'succeeded' })
})

test('running → failed: the task’s fault becomes the operation’s, later steps do not run', async () => {
  const { operationId } = await submit('stop-instance', { mode: 'fast' })
  tasks.answers.stop = {
    state: 'failed',
    fault: { code: 'x.y', message: 'could not stop', detail: 'It is stuck.' },
  }
  expect(await passes(await hold(operationId))).toEqual({ ended: 'failed' })
  expect(await showOperation(db.pool, operationId)).toMatchObject({
    fault: { code: 'x.y' },
    steps: [
      { name: 'stop', state: 'failed', fault: { code: 'x.y' } },
      { name: 'observe', state: 'cancelled' },
    ],
  })
})

test('queued → cancelled: asked before anything started, nothing starts', async () => {
  const { operationId } = await submit('reload-instance')
  await cancelOperation(db.as.web, { operationId, actor })
  walked.add('queued → cancelled')
  expect((await showOperation(db.pool, operationId))?.state).toBe('cancelled')
  await expect(hold(operationId)).rejects.toThrow('not leased')
  expect(tasks.started).toEqual([])
})

test('running → cancelling → cancelled: the running task is told, and the steps after it never start', async () => {
  const { operationId } = await submit('stop-instance', { mode: 'fast' })
  const h = await hold(operationId)
  await passes(h, 3)
  await cancelOperation(db.as.web, { operationId, actor })
  walked.add('running → cancelling')
  expect(await passes(h)).toEqual({ ended: 'cancelled' })
  expect(await showOperation(db.pool, operationId)).toMatchObject({
    fault: null,
    steps: [{ state: 'cancelled' }, { state: 'cancelled' }],
  })
})

test('cancelling → succeeded: a last step that was done before the cancel took effect counts', async () => {
  const { operationId } = await submit('reload-instance')
  const h = await hold(operationId)
  await passes(h, 3)
  tasks.ignoreCancel = true
  await cancelOperation(db.as.web, { operationId, actor })
  tasks.answers.reload = reloaded
  expect(await passes(h)).toEqual({ ended: 'succeeded' })
})

test('cancelling → failed: a step that fails while it is being cancelled fails the operation', async () => {
  const { operationId } = await submit('reload-instance')
  const h = await hold(operationId)
  await passes(h, 3)
  tasks.ignoreCancel = true
  await cancelOperation(db.as.web, { operationId, actor })
  tasks.answers.reload = { state: 'failed', fault: { code: 'x.y', message: 'broke' } }
  expect(await passes(h)).toEqual({ ended: 'failed' })
})

test('every edge of the operation table was walked, and no other', () => {
  expect([...walked].sort()).toEqual(operationTransitions.map((t) => `${t.from} → ${t.to}`).sort())
})

test('an agent that does not answer is waited for, and an overdue step opens an incident that its end closes', async () => {
  const { operationId, instanceId } = await submit('reload-instance')
  const h = await hold(operationId)
  tasks.answers.reload = { code: 'agent.unreachable', message: 'could not reach the agent' }
  await passes(h, 5)
  const waiting = await showOperation(db.pool, operationId)
  expect(waiting).toMatchObject({ state: 'running', message: expect.stringContaining('does not answer') })
  expect(await listIncidents(db.pool, { instanceId })).toEqual([])
  clock = new Date(clock.getTime() + 31_000)
  await passes(h, 3)
  expect(await listIncidents(db.pool, { instanceId })).toMatchObject([{ operationId, severity: 'warning' }])
  tasks.answers.reload = reloaded
  expect(await passes(h)).toEqual({ ended: 'succeeded' })
  expect(await listIncidents(db.pool, { instanceId })).toEqual([])
  expect(await listIncidents(db.pool, { instanceId, state: 'all' })).toMatchObject([
    { closedBecause: expect.stringMatching(/^Step ".*" has ended\.$/) },
  ])
})

test('a step that is overdue opens its incident, also when its bytes, remaining time or message change in every pass', async () => {
  const { operationId, instanceId } = await submit('reload-instance')
  const h = await hold(operationId)
  await passes(h, 3)
  let doneBytes = 0
  const news = () => {
    doneBytes += 1
    const work = { doneBytes, totalBytes: 100, remainingMs: 1_000 - doneBytes }
    tasks.answers.reload = { progress: doneBytes / 100, message: `at byte ${doneBytes}`, work }
  }
  for (let i = 0; i < 3; i++) {
    news()
    await pass(h)
  }
  expect(await listIncidents(db.pool, { instanceId })).toEqual([])
  clock = new Date(clock.getTime() + 31_000)
  for (let i = 0; i < 3; i++) {
    news()
    await pass(h)
  }
  expect(await showOperation(db.pool, operationId)).toMatchObject({ message: 'at byte 6' })
  expect(await listIncidents(db.pool, { instanceId })).toMatchObject([{ operationId, severity: 'warning' }])
  tasks.answers.reload = reloaded
  expect(await passes(h)).toEqual({ ended: 'succeeded' })
  expect(await listIncidents(db.pool, { instanceId })).toEqual([])
})

test('bytes of a step are told as the task counts them; while its host is silent the rest is unknown', async () => {
  const { operationId } = await submit('reload-instance')
  const h = await hold(operationId)
  const step = async () => (await showOperation(db.pool, operationId))?.steps[0]
  await passes(h, 3)
  expect((await step())?.work).toBeNull()
  tasks.answers.reload = { progress: 0.25, work: { doneBytes: 25, totalBytes: 100, remainingMs: null } }
  await passes(h, 1)
  expect(await step()).toMatchObject({
    progress: 0.25,
    work: { doneBytes: 25, totalBytes: 100, remainingMs: null },
  })
  // nothing but the remaining time has moved
  tasks.answers.reload = { progress: 0.25, work: { doneBytes: 25, totalBytes: 100, remainingMs: 9_000 } }
  await passes(h, 1)
  expect((await step())?.work).toEqual({ doneBytes: 25, totalBytes: 100, remainingMs: 9_000 })
  tasks.answers.reload = { code: 'agent.unreachable', message: 'could not reach the agent' }
  await passes(h, 1)
  expect((await step())?.work).toEqual({ doneBytes: 25, totalBytes: 100, remainingMs: null })
  tasks.answers.reload = { work: { doneBytes: 99, totalBytes: 100, remainingMs: 1_000 } }
  await passes(h, 1)
  tasks.answers.reload = reloaded
  expect(await passes(h)).toEqual({ ended: 'succeeded' })
  expect((await step())?.work?.remainingMs).toBeNull()
})

test('a cancelled step of a host that is gone is given up after a minute, and says that it may still run', async () => {
  const { operationId } = await submit('reload-instance')
  const h = await hold(operationId)
  tasks.answers.reload = { code: 'agent.unreachable', message: 'could not reach the agent' }
  await passes(h, 3)
  await cancelOperation(db.as.web, { operationId, actor })
  expect(await passes(h, 3)).toMatchObject({ ended: null })
  clock = new Date(clock.getTime() + 61_000)
  expect(await passes(h, 3)).toEqual({ ended: 'cancelled' })
  expect((await showOperation(db.pool, operationId))?.steps[0]?.fault?.detail).toContain('may still run')
})

test('a retry does not run again what succeeded, and runs what failed with the next attempt', async () => {
  const { operationId } = await submit('stop-instance', { mode: 'fast' })
  tasks.answers.stop = { state: 'succeeded', result: { stoppedMs: 1 } }
  let h = await hold(operationId)
  await passes(h, 3)
  // the observation step is where this one ends: as if it had failed there
  await db.pool.query(
    `UPDATE operation_step SET state = 'failed' WHERE "operationId" = $1 AND name = 'observe'`,
    [operationId],
  )
  await db.pool.query(`UPDATE operation SET state = 'failed', "endedAt" = now() WHERE id = $1`, [operationId])
  const retried = await retryOperation(db.as.web, { operationId, actor })
  h = await hold(retried.operationId)
  await passes(h, 3)
  expect(tasks.started).toEqual(['stop#1'])
  expect((await showOperation(db.pool, retried.operationId))?.steps).toMatchObject([
    { name: 'stop', state: 'succeeded', attempt: 1, result: { stoppedMs: 1 } },
    { name: 'observe', state: 'running', attempt: 2 },
  ])
})

/** Orders a new instance on a host of its own. */
async function create() {
  const { hostId } = await insertTestInstance(db)
  const name = `c-${randomUUID().slice(0, 8)}`
  const order = () =>
    submitOperation(db, {
      kind: 'create-instance',
      input: { instanceId: randomUUID(), name, settings: { work_mem: '1 GB' } } as never,
      actor,
      hostId,
    })
  return { name, order, hostId, ...(await order()) }
}

const refusedTask = {
  state: 'failed',
  fault: { code: 'setting.unknown', message: 'unrecognized configuration parameter' },
} as const
const removedTask = { state: 'succeeded', result: { removed: true, keptDirectory: null } } as const

test('a failed creation takes back what it made and its row: its name is free, and a retry makes both anew', async () => {
  const made = await create()
  tasks.answers.create = refusedTask
  const h = await hold(made.operationId)
  await passes(h, 3)
  expect(tasks.started).toEqual(['create#1', 'undo.remove#1'])
  tasks.answers['undo.remove'] = removedTask
  expect(await passes(h)).toEqual({ ended: 'failed' })
  expect((await showOperation(db.pool, made.operationId))?.fault?.code).toBe('setting.unknown')
  expect((await showInstance(db.pool, made.instanceId))?.deletedAt).not.toBeNull()

  const retried = await retryOperation(db, { operationId: made.operationId, actor })
  expect(await showInstance(db.pool, retried.instanceId)).toMatchObject({
    name: made.name,
    deletedAt: null,
    intent: 'running',
    host: { hostId: made.hostId },
    cluster: { name: made.name, memberRole: 'primary' },
  })
  expect(await passes(await hold(retried.operationId))).toEqual({ ended: 'failed' })
  // and with other settings, by the same name
  await made.order()
  await expect(retryOperation(db, { operationId: retried.operationId, actor })).rejects.toMatchObject({
    fault: { code: 'instance.name_taken' },
  })
})

test('a creation that is cancelled before it began leaves no row', async () => {
  const made = await create()
  await cancelOperation(db, { operationId: made.operationId, actor })
  expect((await showInstance(db.pool, made.instanceId))?.deletedAt).not.toBeNull()
  await made.order()
})

test('an engine that has run is kept though its creation failed: its log says why', async () => {
  const made = await create()
  tasks.answers.create = { state: 'succeeded', result: { port: 5501, directory: '/x' } }
  tasks.answers.start = { state: 'succeeded', result: { postmasterPid: 1, startedAt: 1, readyMs: 1 } }
  const h = await hold(made.operationId)
  await passes(h, 6)
  clock = new Date(clock.getTime() + 60_000)
  await db.pool.query(
    `UPDATE instance SET state = 'crashed', "observedAt" = now() + interval '1 min' WHERE id = $1`,
    [made.instanceId],
  )
  expect(await passes(h)).toEqual({ ended: 'failed' })
  expect(tasks.started).toEqual(['create#1', 'start#1'])
  expect(await showInstance(db.pool, made.instanceId)).toMatchObject({
    deletedAt: null,
    creationFailed: null,
  })
})

test('a creation whose host went away stays as failed, with no port, and is removed without that host', async () => {
  const made = await create()
  await db.pool.query(`UPDATE instance SET port = 5501, state = 'creating' WHERE id = $1`, [made.instanceId])
  const h = await hold(made.operationId)
  await passes(h, 2)
  tasks.answers.create = { code: 'agent.unreachable', message: 'no answer' }
  tasks.answers['undo.remove'] = { code: 'agent.unreachable', message: 'no answer' }
  await cancelOperation(db, { operationId: made.operationId, actor })
  clock = new Date(clock.getTime() + 120_000)
  expect(await passes(h)).toEqual({ ended: 'cancelled' })
  expect(await showInstance(db.pool, made.instanceId)).toMatchObject({
    deletedAt: null,
    port: null,
    creationFailed: { operationId: made.operationId },
  })

  const remove = await submitOperation(db, {
    kind: 'delete-instance',
    input: { instanceId: made.instanceId, confirmName: made.name } as never,
    actor,
  })
  tasks.answers.delete = { code: 'agent.unreachable', message: 'no answer' }
  const removing = await hold(remove.operationId)
  await passes(removing, 2)
  clock = new Date(clock.getTime() + 10_000)
  expect(await passes(removing)).toEqual({ ended: 'succeeded' })
  expect((await showInstance(db.pool, made.instanceId))?.deletedAt).not.toBeNull()
  await made.order()
})

test('a stop that is escalated starts the immediate one beside the fast one, once, and ends with it', async () => {
  const { instanceId, operationId } = await submit('stop-instance', { mode: 'fast' })
  const h = await hold(operationId)
  await passes(h, 3)
  expect(tasks.started).toEqual(['stop#1'])
  await submitOperation(db.as.web, {
    kind: 'stop-instance',
    input: { instanceId, mode: 'immediate' } as never,
    actor,
  })
  await passes(h, 3)
  expect(tasks.started).toEqual(['stop#1', 'stop-hasten#1'])
  tasks.answers.stop = { state: 'succeeded', result: { stoppedMs: 1 } }
  await passes(h, 2)
  expect((await showOperation(db.pool, operationId))?.steps.map((s) => s.state)).toEqual([
    'succeeded',
    'running',
  ])
})

test('a restart that rolled settings back has failed with the line, and the history says what holds', async () => {
  const { instanceId, operationId } = await submit('restart-instance', { mode: 'fast' })
  const h = await hold(operationId)
  await passes(h, 3)
  tasks.answers.restart = {
    state: 'succeeded',
    result: {
      postmasterPid: 7,
      readyMs: 1,
      rolledBack: {
        line: 'line 3 of floe.conf: huge_pages = on',
        reason: 'could not map anonymous shared memory',
        confirmed: [{ name: 'huge_pages', oldValue: 'on', newValue: null, pendingRestart: false }],
        managed: { work_mem: '8MB' },
      },
    },
  }
  expect(await passes(h, 3)).toEqual({ ended: 'failed' })
  expect(await showOperation(db.pool, operationId)).toMatchObject({
    state: 'failed',
    fault: { code: 'setting.rolled_back', detail: expect.stringContaining('line 3 of floe.conf') },
  })
  expect(await listSettingChanges(db.pool, { instanceId })).toMatchObject([
    {
      name: 'huge_pages',
      oldValue: 'on',
      newValue: null,
      actorName: 'Ada',
      reason: expect.stringContaining('rolled back'),
    },
  ])
  expect((await listSettingRevisions(db.pool, { instanceId }))[0]?.managed).toEqual({ work_mem: '8MB' })
})

describe('with another controller at every pass, because the one before was killed', () => {
  const confirmed = [{ name: 'work_mem', oldValue: '4MB', newValue: '8MB', pendingRestart: false }]
  test.each([
    ['start-instance', {}, { postmasterPid: 7, readyMs: 1 }, 'running'],
    ['stop-instance', { mode: 'fast' }, { stoppedMs: 1 }, 'stopped'],
    ['restart-instance', { mode: 'fast' }, { postmasterPid: 7, readyMs: 1 }, 'running'],
    ['reload-instance', {}, { pendingRestart: [] }, 'running'],
    [
      'change-settings',
      { changes: [{ name: 'work_mem', value: '8MB' }] },
      { confirmed, managedBefore: {}, managed: { work_mem: '8MB' } },
      'running',
    ],
    ['resolve-drift', { how: 'adopt' }, { confirmed, managed: { work_mem: '8MB' } }, 'running'],
  ] as const)(
    '%s starts its task once, succeeds, and records what it did once',
    async (kind, input, result, state) => {
      const { instanceId, operationId } = await submit(kind, input)
      const seen = JSON.stringify({ postmasterPid: state === 'running' ? 7 : null })
      /** Whoever leases it after a lease that has run out. */
      const successor = async () => {
        await db.pool.query(`UPDATE operation SET "leaseExpiresAt" = now() - interval '1 s' WHERE id = $1`, [
          operationId,
        ])
        return hold(operationId)
      }
      let ended: Advanced = { ended: null, pauseMs: 0 }
      for (let i = 0; i < 12 && ended.ended === null; i++) {
        const h = await successor()
        const late = await successor()
        // the one before finds that it is not the newest any more, whatever it was about to write
        if (i % 2 === 1) await expect(pass(h)).rejects.toThrow()
        ended = await pass(late)
        for (const step of tasks.started) tasks.answers[step] = { state: 'succeeded', result }
        await db.pool.query(
          `UPDATE instance SET state = $2, observed = $3, "observedAt" = now() WHERE id = $1`,
          [instanceId, state, seen],
        )
      }
      expect(ended).toEqual({ ended: 'succeeded' })
      expect(tasks.started).toHaveLength(1)
      const changes = await listSettingChanges(db.pool, { instanceId })
      const settles = kind === 'change-settings' || kind === 'resolve-drift'
      expect(changes).toHaveLength(settles ? 1 : 0)
      const revisions = await listSettingRevisions(db.pool, { instanceId })
      expect(revisions.filter((s) => s.operationId === operationId)).toHaveLength(settles ? 1 : 0)
    },
  )
})

test('a delete whose instance the agent does not know is done, and its row says deleted', async () => {
  const { instanceId, name } = await insertTestInstance(db)
  const { operationId } = await submitOperation(db.as.web, {
    kind: 'delete-instance',
    input: { instanceId, confirmName: name, keepFiles: false } as never,
    actor,
  })
  tasks.answers.delete = { code: 'instance.not_found', message: 'instance does not exist on this host' }
  expect(await passes(await hold(operationId))).toEqual({ ended: 'succeeded' })
  expect((await showInstance(db.pool, instanceId))?.deletedAt).not.toBeNull()
})

/** A takeover whose steps before the promotion are done, as these results have it, and that is asked to be cancelled. */
async function cancelledBeforePromotion(
  kind: 'switchover-cluster' | 'failover-cluster',
  done: (primaryName: string) => Record<string, object>,
) {
  const primary = await insertTestInstance(db)
  const { rows } = await db.pool.query('SELECT "clusterId" FROM instance WHERE id = $1', [primary.instanceId])
  const standby = { instanceId: randomUUID(), name: `s-${primary.name}`, clusterId: rows[0].clusterId }
  await insertStandby(db.pool, { ...standby, hostId: primary.hostId })
  const connection = { host: '127.0.0.1', port: 1, socketDirectory: '/s', user: 'u', database: 'd' }
  await db.pool.query('UPDATE instance SET observed = $2, "observedAt" = now() WHERE id = $1', [
    primary.instanceId,
    JSON.stringify({ connection }),
  ])
  const { operationId } = await submitOperation(db.as.web, {
    kind,
    input: { clusterId: standby.clusterId, instanceId: standby.instanceId } as never,
    actor,
  })
  const h = await hold(operationId)
  await pass(h)
  const results = {
    check: { formerInstanceId: primary.instanceId, otherInstanceIds: [] },
    ...done(primary.name),
  }
  await db.pool.query(
    `UPDATE operation_step SET state = 'succeeded', "startedAt" = now(), result = coalesce($2::jsonb -> name, '{}')
      WHERE "operationId" = $1
        AND position < (SELECT position FROM operation_step WHERE "operationId" = $1 AND name = 'promote')`,
    [operationId, JSON.stringify(results)],
  )
  await cancelOperation(db.as.web, { operationId, actor })
  return { h, operationId }
}

test.each([
  ['switchover-cluster', () => ({ demote: { shutdownLsn: '0/1', stoppedMs: 1 } })],
  ['failover-cluster', (name: string) => ({ fence: { [name]: { endLsn: null, wasRunning: true } } })],
] as const)(
  '%s: one that is cancelled when only the promotion is left has its primary back',
  async (kind, done) => {
    const { h, operationId } = await cancelledBeforePromotion(kind, done)
    await pass(h)
    expect(tasks.started).toContain('undo.restore#1')
    // nothing else ends it, and the promotion is never begun
    expect((await showOperation(db.pool, operationId))?.state).toBe('cancelling')
    for (let i = 0; i < 12 && (await pass(h)).ended === null; i++)
      for (const key of tasks.started) tasks.answers[key] = { state: 'succeeded', result: {} }
    const ended = await showOperation(db.pool, operationId)
    expect(ended).toMatchObject({ state: 'cancelled', message: null })
    expect(ended?.steps.find((s) => s.name === 'promote')).toMatchObject({ state: 'cancelled' })
    expect(tasks.started.filter((key) => key.startsWith('promote'))).toEqual([])
  },
)

test('what a cancelled operation could not take back is told', async () => {
  const { h, operationId } = await cancelledBeforePromotion('switchover-cluster', () => ({
    demote: { shutdownLsn: '0/1', stoppedMs: 1 },
  }))
  tasks.answers['undo.restore'] = { state: 'failed', fault: { code: 'x.y', message: 'no space left' } }
  for (let i = 0; i < 12 && (await pass(h)).ended === null; i++)
    for (const key of tasks.started)
      if (!key.startsWith('undo.restore')) tasks.answers[key] = { state: 'succeeded', result: {} }
  const left = expect.stringMatching(/Could not be undone: restore-primary on host .*: no space left/)
  expect(await showOperation(db.pool, operationId)).toMatchObject({ state: 'cancelled', message: left })
  const log = await readOperationLog(db.pool, { operationId })
  expect(log.map((line) => line.text)).toContainEqual(left)
})

test('a stored input that no longer fits fails the operation instead of blocking its instance', async () => {
  const { operationId } = await submit('reload-instance')
  await db.pool.query(
    `UPDATE operation SET input = '{"instanceId": "${randomUUID().slice(1)}"}' WHERE id = $1`,
    [operationId],
  )
  expect(await passes(await hold(operationId))).toEqual({ ended: 'failed' })
})

test('a standby whose host is revoked while it is copied: what was begun on the primary is taken back, and its row', async () => {
  const primary = await insertTestInstance(db)
  const other = await insertTestInstance(db)
  const instanceId = randomUUID()
  const { rows } = await db.pool.query('SELECT "clusterId" FROM instance WHERE id = $1', [primary.instanceId])
  const { operationId } = await submitOperation(db.as.web, {
    kind: 'create-standby',
    input: { instanceId, name: 'to-be', clusterId: rows[0].clusterId } as never,
    actor,
    hostId: other.hostId,
  })
  const h = await hold(operationId)
  const verifier = `SCRAM-SHA-256$4096:${'A'.repeat(24)}$${'A'.repeat(44)}:${'A'.repeat(44)}`
  tasks.answers = {
    prepare: {
      state: 'succeeded',
      result: { port: 1, directory: '/i', engineVersion: '18.6', replicationVerifier: verifier },
    },
    admit: {
      state: 'succeeded',
      result: {
        upstream: {
          host: '127.0.0.1',
          port: 1,
          slot: 'floe_to_be',
          role: 'floe_standby_to_be',
          systemIdentifier: '1',
          engineVersion: '18.6',
          sizeBytes: 1,
        },
      },
    },
    'undo.dismiss': { state: 'succeeded', result: { droppedSlot: true } },
  }
  let revoked = false
  const ports = {
    pool: db.as.controller.pool,
    agentOf: (hostId: string) => {
      if (revoked && hostId === other.hostId) throw fault('host.revoked', 'host "other" was revoked')
      return tasks
    },
    now: () => clock,
    log: () => {},
  }
  const until = async (done: () => boolean | Promise<boolean>) => {
    for (let i = 0; i < 20 && !(await done()); i++) await advanceOperation(h, ports)
  }
  await until(() => tasks.started.includes('clone#1'))
  revoked = true
  await until(async () => (await showOperation(db.pool, operationId))?.endedAt != null)
  expect(tasks.started).toContain('undo.dismiss#1')
  expect(await showOperation(db.pool, operationId)).toMatchObject({
    state: 'failed',
    fault: { code: 'host.revoked', detail: expect.stringContaining('forget-standby') },
  })
  expect((await showInstance(db.pool, instanceId))?.deletedAt).not.toBeNull()
})
