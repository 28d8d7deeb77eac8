import { randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitUntil } from '@floe/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { taskBodies } from '../bodies'
import { BY_ITSELF, TaskRunner } from './runner'
import { TaskStore } from './store'
import type { TaskBodies } from './task'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-runner-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const instanceId = randomUUID() as never
/** A runner over an instance that starts for ever, and answers a reload at once. */
function bench(bodies: TaskBodies = taskBodies): TaskRunner {
  const instance = {
    instanceId,
    activity: null,
    state: 'starting',
    postmaster: { pid: process.pid, status: 'starting' },
    registered: { name: 'one', port: 1 },
    layout: { dataDirectory: directory, fenceFile: join(directory, 'fenced.json') },
    user: { name: 'floe', uid: null, gid: null },
    processes: () => ({ all: [], engine: [], postmaster: null, ofUser: [] }),
    look: async () => {},
    connect: async () => ({ pendingRestart: [] }),
  }
  const parts = {
    instances: { get: () => instance, find: () => instance },
    registry: { update() {} },
    installation: { stateDirectory: directory },
    user: {},
  }
  const log = { info() {}, warn() {}, error() {} }
  const problems = { begin() {}, end() {} }
  return new TaskRunner(new TaskStore(directory), bodies, parts as never, log as never, problems as never)
}
const keyOf = (step: string) => ({ operationId: randomUUID(), step, attempt: 1 })
const startOf = (step: string) => ({
  key: keyOf(step),
  task: { kind: 'start-instance' as const, instanceId },
})

test('a task that somebody orders displaces a start by itself, and runs in its place', async () => {
  const runner = bench()
  const byItself = startOf(BY_ITSELF)
  runner.start(byItself)
  const ordered = { key: keyOf('reload'), task: { kind: 'reload-instance' as const, instanceId } }
  expect(() => runner.start(ordered)).toThrow('another task works on this instance')
  await waitUntil('it has made way', async () => runner.check(byItself.key, 0).state === 'cancelled')
  runner.start(ordered)
  await waitUntil('the ordered one ran', async () => runner.check(ordered.key, 0).state === 'succeeded')
})

test('a start by itself displaces nothing', async () => {
  const runner = bench()
  const ordered = startOf('start')
  runner.start(ordered)
  expect(() => runner.start(startOf(BY_ITSELF))).toThrow('another task works on this instance')
  expect(runner.check(ordered.key, 0).state).toBe('running')
  runner.cancel(ordered.key)
  await waitUntil('it is given up', async () => runner.check(ordered.key, 0).state === 'cancelled')
})

test('tasks that only read run beside any other, two of those that read tables at once', async () => {
  const untilCancelled: TaskBodies['preview-flashback'] = (_task, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
    })
  const runner = bench({ ...taskBodies, 'preview-flashback': untilCancelled })
  const preview = (step: string) => ({
    key: keyOf(step),
    task: {
      kind: 'preview-flashback' as const,
      instanceId,
      database: 'shop',
      table: 1,
      at: '2026-11-23T23:40:00Z',
    },
  })
  const starting = startOf('start')
  runner.start(starting)
  const [first, second, third] = [preview('first'), preview('second'), preview('third')] as const
  runner.start(first)
  runner.start(second)
  expect(() => runner.start(third)).toThrow('other tasks read from this instance')
  runner.cancel(first.key)
  await waitUntil('it is given up', async () => runner.check(first.key, 0).state === 'cancelled')
  expect(runner.start(third).state).toBe('running')
  for (const { key } of [starting, second, third]) runner.cancel(key)
  await waitUntil('all are given up', async () => runner.running === 0)
})

test('a piece is in memory only: no file has it, the newest can be asked for, and a forgotten one runs again', async () => {
  const ran: string[] = []
  const runner = bench({
    ...taskBodies,
    'read-copies': async () => {
      ran.push('read')
      return { data: 'a row of a user', crc32: 1, damaged: [] }
    },
  })
  const operationId = randomUUID()
  const piece = {
    kind: 'pages' as const,
    blocks: [{ tablespace: 1663, database: 5, relation: 7, fork: 0, block: 0 }],
  }
  const task = { kind: 'read-copies' as const, instanceId, control: '0'.repeat(64), piece }
  const keys = Array.from({ length: 10 }, (_, i) => ({ operationId, step: `pages.read.${i}`, attempt: 1 }))
  for (const key of keys) {
    runner.start({ key, task })
    await waitUntil('it has ended', async () => runner.check(key, 0).state === 'succeeded')
  }
  expect(runner.check(keys[9] as never, 0).result).toMatchObject({ data: 'a row of a user' })
  expect(readdirSync(join(directory, 'tasks'))).toEqual([])
  // sent twice it runs once, and as another task never
  runner.start({ key: keys[9] as never, task })
  expect(ran).toHaveLength(10)
  const other = { ...task, control: '1'.repeat(64) }
  expect(() => runner.start({ key: keys[9] as never, task: other })).toThrow('a different task')
  expect(runner.check(keys[0] as never, 0)).toMatchObject({ state: 'not-started', result: null })
  runner.start({ key: keys[0] as never, task })
  await waitUntil('it has run again', async () => runner.check(keys[0] as never, 0).state === 'succeeded')
  expect(ran).toHaveLength(11)
})
