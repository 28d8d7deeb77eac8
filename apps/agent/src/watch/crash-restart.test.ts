import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Instance } from '../engine/instance'
import { CrashedInstances, START_AFTER_MS } from './crash-restart'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-crashed-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

/** An instance in a state of the test's choice, and how often it was started by itself. */
function bench(start: () => void = () => {}) {
  const instance = {
    instanceId: 'i',
    state: 'crashed',
    activity: null as string | null,
    registered: { instanceId: 'i' },
    layout: { fenceFile: join(directory, 'fenced.json') },
  }
  const started: number[] = []
  const log = { info() {}, warn() {}, error() {} }
  let now = 0
  const tasks = {
    start() {
      start()
      started.push(now)
    },
  }
  const crashed = new CrashedInstances({} as never, tasks as never, log as never)
  const look = (at: number, state = 'crashed') => {
    now = at
    instance.state = state
    crashed.look(instance as never as Instance, at)
  }
  /** Looks each half second until then, as the agent does; a start fails at once and leaves it crashed. */
  const until = (from: number, to: number) => {
    for (let at = from; at <= to; at += 500) look(at)
  }
  return { instance, started, look, until }
}

test('a crashed instance is started soon, twice more, and then left for a person', () => {
  const { started, look } = bench()
  let at = 0
  for (const after of START_AFTER_MS) {
    look(at)
    look(at + after - 1)
    look(at + after)
    at += after + 1_000
    look(at, 'starting')
    at += 1_000
  }
  expect(started).toHaveLength(START_AFTER_MS.length)
  for (let n = 0; n < 20; n++) look(at + n * 60_000)
  expect(started).toHaveLength(START_AFTER_MS.length)
})

test('what was stopped, runs, or is being worked on is left alone', () => {
  const { instance, started, look } = bench()
  for (const state of ['stopped', 'running', 'starting', 'unknown'])
    for (const at of [0, 60_000]) look(at, state)
  instance.activity = 'starting'
  for (const at of [60_000, 120_000]) look(at)
  expect(started).toEqual([])
})

test('a fenced one is never started', () => {
  const { instance, started, until } = bench()
  writeFileSync(instance.layout.fenceFile, '{"at":0,"reason":"another one took over"}')
  until(0, 300_000)
  expect(started).toEqual([])
})

test('after ten minutes without a crash, or an ordered stop, the next one counts as the first', () => {
  const { started, look, until } = bench()
  until(0, 2_000)
  look(3_000, 'running')
  look(10_000)
  look(12_500)
  expect(started).toEqual([2_000])
  look(20_000, 'running')
  look(620_000, 'running')
  until(630_000, 632_000)
  expect(started).toEqual([2_000, 632_000])
  look(640_000, 'stopped')
  until(650_000, 652_000)
  expect(started).toEqual([2_000, 632_000, 652_000])
})

test('a start that is refused, because a task works on it, is tried again and does not count', () => {
  let busy = true
  const { started, until } = bench(() => {
    if (busy) throw new Error('busy')
  })
  until(0, 10_000)
  busy = false
  until(10_500, 10_500)
  expect(started).toEqual([10_500])
})
