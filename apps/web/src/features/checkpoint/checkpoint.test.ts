import { describe, expect, test } from 'vitest'
import { checkpointBands } from './checkpoint-bands'
import { sortCheckpoints } from './checkpoint-columns'
import { type CheckpointView, completedFrom } from './use-checkpoints'

const checkpoint = (more: Partial<CheckpointView>): CheckpointView => ({
  seq: 1,
  kind: 'checkpoint',
  reasons: ['time'],
  reason: 'checkpoint_timeout elapsed',
  startedAt: 1_000_000,
  completedAt: 1_030_500,
  buffersWritten: 100,
  buffersPercent: 0.6,
  slruBuffersWritten: null,
  walFilesAdded: 0,
  walFilesRemoved: 1,
  walFilesRecycled: 2,
  writeMs: 30_000,
  syncMs: 400,
  totalMs: 30_500,
  syncFiles: 12,
  longestSyncMs: 200,
  averageSyncMs: 33,
  distanceBytes: 1_000,
  estimateBytes: 2_000,
  lsn: '0/2000000',
  redoLsn: '0/1000000',
  ...more,
})

describe('bands', () => {
  test('the write phase comes first, then the sync phase, each as long as the server said', () => {
    const [write, sync] = checkpointBands([checkpoint({})], null, 0)
    expect(write).toMatchObject({ phase: 'write', from: 1_000_000, to: 1_030_000 })
    expect(sync).toMatchObject({ phase: 'sync', from: 1_030_000, to: 1_030_400 })
    expect(write?.label).toContain('checkpoint_timeout elapsed')
  })

  test('a start that the log did not tell is reckoned from the end', () => {
    const [write] = checkpointBands([checkpoint({ startedAt: null })], null, 0)
    expect(write?.from).toBe(1_000_000)
  })

  test('a running checkpoint is drawn up to now', () => {
    const running = { kind: 'checkpoint' as const, reason: 'requested', startedAt: 5_000 }
    expect(checkpointBands([], running, 9_000)).toEqual([
      expect.objectContaining({ key: 'running', phase: 'write', from: 5_000, to: 9_000 }),
    ])
  })
})

describe('sorting', () => {
  const list = [
    checkpoint({ seq: 1, completedAt: 1, syncMs: 5, lsn: '0/9000000' }),
    checkpoint({ seq: 2, completedAt: 2, syncMs: 50, lsn: '1/10' }),
    checkpoint({ seq: 3, completedAt: 3, syncMs: 5, lsn: null }),
  ]
  const order = (key: string, direction: 'ascending' | 'descending') =>
    sortCheckpoints(list, key, direction).map((c) => c.seq)
  test('orders by numbers, equal ones newest first', () => {
    expect(order('sync', 'descending')).toEqual([2, 3, 1])
    expect(order('sync', 'ascending')).toEqual([3, 1, 2])
  })
  test('orders positions as positions and not as text', () => {
    expect(order('lsn', 'ascending')).toEqual([3, 1, 2])
  })
})

test('of those known, the ones completed in the range that is shown now are shown', () => {
  const newestFirst = [900, 600, 300].map((completedAt) => checkpoint({ seq: completedAt, completedAt }))
  expect(completedFrom(newestFirst, 0)).toBe(3)
  expect(completedFrom(newestFirst, 600)).toBe(2)
  expect(completedFrom(newestFirst, 601)).toBe(1)
  expect(completedFrom(newestFirst, 1_000)).toBe(0)
  expect(completedFrom([], 0)).toBe(0)
})
