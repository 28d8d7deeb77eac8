import { randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InstanceId } from '@floe/domain'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type StoredTask, TaskStore } from './store'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-tasks-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const task = (endedAt: number | null): StoredTask => ({
  version: 1,
  key: { operationId: randomUUID(), step: 'start', attempt: 1 },
  task: { kind: 'start-instance', instanceId: InstanceId.parse(randomUUID()) },
  state: endedAt === null ? 'running' : 'succeeded',
  cancelAsked: false,
  result: null,
  fault: null,
  startedAt: 1,
  endedAt,
})
const fileOf = (t: StoredTask) => `${t.key.operationId}.${t.key.step}.${t.key.attempt}.json`
const DAY_MS = 86_400_000

test('a file that no longer parses is moved aside and told of; the others are there as before', () => {
  const told: string[] = []
  const [good, torn, foreign] = [task(null), task(null), task(5)]
  const store = new TaskStore(directory, (path) => told.push(path))
  for (const t of [good, torn, foreign]) store.put(t)
  writeFileSync(join(directory, 'tasks', fileOf(torn)), '{"version":1,"key"')
  writeFileSync(join(directory, 'tasks', fileOf(foreign)), '{"version":2}')

  expect(store.unended()).toEqual([good])
  expect(store.find(torn.key)).toBeNull()
  expect(store.find(foreign.key)).toBeNull()
  expect(told).toHaveLength(2)
  expect([...told].sort()).toEqual(store.unreadable())
  const kept = told.find((path) => path.includes(torn.key.operationId)) as string
  expect(readFileSync(kept, 'utf8')).toBe('{"version":1,"key"')
  // its key can be started again
  store.put(torn)
  expect(store.find(torn.key)).toEqual(torn)
})

test('what ended more than a week ago is dropped with its log and note, what runs never', () => {
  const store = new TaskStore(directory)
  const [ended, running, fresh] = [task(5), task(null), task(6)]
  for (const t of [ended, running, fresh]) store.put(t)
  store.appendLog(ended.key, { seq: 1, at: 1, text: 'x' })
  store.writeNote(ended.key, { a: 1 })
  const long = (Date.now() - 8 * DAY_MS) / 1_000
  for (const t of [ended, running]) utimesSync(join(directory, 'tasks', fileOf(t)), long, long)
  expect(store.prune()).toBe(1)
  expect(readdirSync(join(directory, 'tasks')).sort()).toEqual([fileOf(running), fileOf(fresh)].sort())
})

test('a note outlives the process and is gone once it is dropped', () => {
  const { key } = task(null)
  new TaskStore(directory).writeNote(key, { managed: { work_mem: '4MB' } })
  const store = new TaskStore(directory)
  expect(store.readNote(key)).toEqual({ managed: { work_mem: '4MB' } })
  store.writeNote(key, null)
  expect(store.readNote(key)).toBeNull()
})
