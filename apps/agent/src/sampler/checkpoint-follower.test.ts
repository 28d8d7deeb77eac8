import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CheckpointFollower } from './checkpoint-follower'
import { CheckpointStore } from './checkpoint-store'

let directory: string
let clock = 0
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-follow-'))
  clock = 0
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const entry = (second: number, message: string, backend = 'checkpointer') =>
  `${JSON.stringify({ timestamp: `2026-11-21 08:00:${String(second).padStart(2, '0')}.000 UTC`, backend_type: backend, error_severity: 'LOG', message })}\n`
const complete = (buffers: number) =>
  `checkpoint complete: wrote ${buffers} buffers (0.1%), wrote 1 SLRU buffers; 0 WAL file(s) added, 0 removed, 0 recycled; write=1.000 s, sync=0.010 s, total=1.020 s; sync files=2, longest=0.006 s, average=0.005 s; distance=100 kB, estimate=200 kB; lsn=0/2, redo lsn=0/1`
const log = (name: string) => join(directory, `engine-2026-11-21T08-00-${name}.json`)
const storePath = () => join(directory, 'state', 'checkpoints.jsonl')
const follow = () => {
  const store = new CheckpointStore(storePath())
  const follower = new CheckpointFollower(directory, () => ({ name: 'own', uid: null, gid: null }), store)
  // each step well after the last one, so that it lists the directory anew
  const step = () => {
    clock += 10_000
    return follower.step(clock)
  }
  return { store, follower, step }
}
const buffers = (store: CheckpointStore) => store.read(0, 1_000).map((c) => [c.seq, c.buffersWritten])

test('a start line and its complete line become one checkpoint with reason and both times', () => {
  writeFileSync(log('00'), entry(1, 'checkpoint starting: wal') + entry(2, complete(44)))
  const { store, step } = follow()
  expect(step()).toBe(1)
  expect(store.read(0, 10)).toMatchObject([
    {
      seq: 1,
      reasons: ['wal'],
      startedAt: Date.parse('2026-11-21T08:00:01Z'),
      completedAt: Date.parse('2026-11-21T08:00:02Z'),
      buffersWritten: 44,
    },
  ])
})

const interrupted = 'database system was interrupted; last known up at 2026-11-21 07:59:00 UTC'
const ready = 'database system is ready to accept connections'
const at = (second: number) => Date.parse('2026-11-21T08:00:00Z') + second * 1_000

test('a start after a crash is known from its first line until clients are let in', () => {
  writeFileSync(log('00'), entry(1, interrupted, 'startup'))
  const { follower, step } = follow()
  step()
  expect(follower.crashStart).toBeNull()
  appendFileSync(log('00'), entry(5, complete(3)) + entry(6, ready, 'postmaster'))
  expect(step()).toBe(1)
  expect(follower.crashStart).toEqual({ beganAt: at(1), readyAt: at(6), standby: false })
})

test('a start after a shutdown and the first one of a copy are no starts after a crash; what a client logs is nobody’s', () => {
  const { follower, step } = follow()
  writeFileSync(log('00'), entry(1, interrupted, 'startup') + entry(2, ready, 'postmaster'))
  step()
  expect(follower.crashStart).not.toBeNull()
  appendFileSync(
    log('00'),
    entry(3, 'database system was shut down at 2026-11-21 08:00:03 UTC', 'startup') +
      entry(4, ready, 'postmaster'),
  )
  step()
  expect(follower.crashStart).toBeNull()
  appendFileSync(
    log('00'),
    entry(5, interrupted, 'startup') +
      entry(
        6,
        'starting backup recovery with redo LSN 0/2000028, checkpoint LSN 0/2000080, on timeline ID 1',
        'startup',
      ) +
      entry(7, 'entering standby mode', 'startup') +
      entry(8, 'database system is ready to accept read-only connections', 'postmaster'),
  )
  step()
  expect(follower.crashStart).toBeNull()
  appendFileSync(log('00'), entry(9, interrupted, 'client backend') + entry(10, ready, 'client backend'))
  step()
  expect(follower.crashStart).toBeNull()
})

test('a standby is let in on as one; a start that ends before that is not one, the next is', () => {
  const { follower, step } = follow()
  writeFileSync(
    log('00'),
    entry(1, interrupted, 'startup') +
      entry(3, interrupted, 'startup') +
      entry(4, 'entering standby mode', 'startup') +
      entry(9, 'database system is ready to accept read-only connections', 'postmaster'),
  )
  step()
  expect(follower.crashStart).toEqual({ beganAt: at(3), readyAt: at(9), standby: true })
})

test('between both lines it is running', () => {
  writeFileSync(log('00'), entry(1, 'checkpoint starting: time'))
  const { follower, step } = follow()
  step()
  expect(follower.running).toMatchObject({ reasons: ['time'], startedAt: Date.parse('2026-11-21T08:00:01Z') })
  appendFileSync(log('00'), entry(2, complete(1)))
  step()
  expect(follower.running).toBeNull()
})

test('rotation loses no checkpoint, also when its lines lie in two files', () => {
  writeFileSync(log('00'), entry(1, 'checkpoint starting: time'))
  const { store, step } = follow()
  step()
  appendFileSync(log('00'), entry(2, complete(1)) + entry(3, 'checkpoint starting: time'))
  writeFileSync(log('30'), entry(4, complete(2)))
  writeFileSync(log('59'), entry(5, 'checkpoint starting: wal') + entry(6, complete(3)))
  step()
  expect(buffers(store)).toEqual([
    [1, 1],
    [2, 2],
    [3, 3],
  ])
})

test('a restart repeats and loses none, also one that was running', () => {
  writeFileSync(log('00'), entry(1, 'checkpoint starting: time') + entry(2, complete(1)))
  follow().step()
  appendFileSync(log('00'), entry(3, 'checkpoint starting: wal'))
  follow().step()
  appendFileSync(log('00'), entry(4, complete(2)))
  const { store, step } = follow()
  step()
  step()
  expect(store.read(0, 10).map((c) => [c.seq, c.buffersWritten, c.reasons[0]])).toEqual([
    [1, 1, 'time'],
    [2, 2, 'wal'],
  ])
})

test('half a line is read when it is whole', () => {
  const line = entry(2, complete(7))
  writeFileSync(log('00'), line.slice(0, 60))
  const { store, step } = follow()
  step()
  appendFileSync(log('00'), line.slice(60))
  step()
  expect(buffers(store)).toEqual([[1, 7]])
})

test('what a client logs in the same words is not a checkpoint', () => {
  writeFileSync(log('00'), entry(1, complete(9), 'client backend'))
  const { store, step } = follow()
  step()
  expect(buffers(store)).toEqual([])
})

test('megabytes of other lines are read over and the checkpoint behind them is found', () => {
  const chatter = entry(1, `duration: 1 ms statement: select '${'x'.repeat(500)}'`, 'client backend').repeat(
    6_000,
  )
  writeFileSync(log('00'), chatter + entry(2, complete(5)))
  const { store, step } = follow()
  step()
  expect(buffers(store)).toEqual([[1, 5]])
})

test('a stored line that a kill cut off does not swallow the next checkpoint', () => {
  writeFileSync(log('00'), entry(2, complete(1)))
  follow().step()
  appendFileSync(storePath(), '{"checkpoint":{"seq":2,')
  appendFileSync(log('00'), entry(4, complete(2)))
  const { store, step } = follow()
  step()
  expect(buffers(store)).toEqual([
    [1, 1],
    [2, 2],
  ])
  expect(readFileSync(storePath(), 'utf8').trim().split('\n')).toHaveLength(2)
})

test('at least 1,000 checkpoints are kept, and numbers go on when old ones are dropped', () => {
  const { store, step } = follow()
  for (let i = 0; i < 3_200; i++) appendFileSync(log('00'), entry(i % 60, complete(i)))
  step()
  step()
  const kept = store.read(0, 10_000)
  expect(kept.length).toBeGreaterThanOrEqual(1_000)
  expect(kept.at(-1)).toMatchObject({ seq: 3_200, buffersWritten: 3_199 })
  expect(kept.map((c) => c.seq)).toEqual(kept.map((_, i) => (kept[0]?.seq as number) + i))
  expect(new CheckpointStore(storePath()).read(3_198, 10).map((c) => c.seq)).toEqual([3_199, 3_200])
})
