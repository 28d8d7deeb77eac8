import { appendFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { StallRecord } from '@floe/telemetry'
import { makeScratchDirectory } from '@floe/testkit'
import { afterAll, expect, test } from 'vitest'
import { StallStore } from './stall-store'

const scratch = makeScratchDirectory('stalls')
afterAll(() => scratch.remove())

const stall = (startedAt: number): StallRecord => ({
  startedAt,
  endedAt: startedAt + 1_500,
  cause: 'lock',
  waits: [{ type: 'Lock', event: 'relation', count: 3 }],
  sessions: 3,
  checkpoint: null,
  checkpointerStopped: false,
  checkpointerHangsIn: null,
  device: null,
})
const starts = (store: StallStore, afterSeq = 0) => store.read(afterSeq, 2_000).map((s) => s.startedAt)

test('stalls outlive the process, and a line cut off by a kill swallows none', () => {
  const path = join(scratch.path, 'one/stalls.jsonl')
  const first = new StallStore(path)
  first.append(stall(5_000.25))
  first.append(stall(9_000))
  expect(first.read(0, 10)[0]).toEqual({ ...stall(5_000.25), seq: 5_000 })
  appendFileSync(path, '{"seq":1')
  const second = new StallStore(path)
  expect(starts(second)).toEqual([5_000.25, 9_000])
  second.append(stall(12_000))
  expect(starts(new StallStore(path), 5_000)).toEqual([9_000, 12_000])
})

test('the newest are kept, and numbers grow whatever the clock does', () => {
  const path = join(scratch.path, 'two/stalls.jsonl')
  const store = new StallStore(path)
  for (let i = 0; i < 1_000; i++) store.append(stall(i < 500 ? 10_000 + i : 1))
  const kept = new StallStore(path).read(0, 2_000)
  expect(kept).toHaveLength(500)
  expect(kept.every((s, i) => i === 0 || s.seq > (kept[i - 1]?.seq ?? 0))).toBe(true)
})

test('what cannot be written is told and kept, and written later', () => {
  const path = join(scratch.path, 'three/stalls.jsonl')
  const told: boolean[] = []
  const store = new StallStore(path, (error) => told.push(error === null))
  mkdirSync(path)
  store.append(stall(1_000))
  expect(told).toEqual([false])
  expect(starts(store)).toEqual([1_000])
  rmSync(path, { recursive: true })
  store.write()
  expect(told).toEqual([false, true])
  expect(starts(new StallStore(path))).toEqual([1_000])
})
