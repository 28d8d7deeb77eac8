import { insertCheckpoints } from '@floe/db'
import { insertTestInstance } from '@floe/db/testing'
import { InstanceId } from '@floe/domain'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterAll(() => it.close())

const minute = 60_000

test('the checkpoints of the last minutes are those completed in them, newest first', async () => {
  const instanceId = InstanceId.parse((await insertTestInstance(it.database)).instanceId)
  const now = Date.now()
  await insertCheckpoints(
    it.database.pool,
    instanceId,
    [30, 10, 2].map((ago, seq) => ({
      seq: seq + 1,
      kind: 'checkpoint' as const,
      reasons: ['time'],
      startedAt: now - (ago + 1) * minute,
      completedAt: now - ago * minute,
      buffersWritten: 1,
      buffersPercent: 0,
      slruBuffersWritten: null,
      walFilesAdded: 0,
      walFilesRemoved: 0,
      walFilesRecycled: 0,
      writeMs: 1,
      syncMs: 1,
      totalMs: 1,
      syncFiles: 1,
      longestSyncMs: 1,
      averageSyncMs: 1,
      distanceBytes: 1,
      estimateBytes: 1,
      lsn: null,
      redoLsn: null,
    })),
  )
  const caller = await it.callerOf((await it.signedIn('viewer')).headers)
  const seqs = async (asked: object) =>
    (await caller.checkpoint.list({ instanceId, ...asked })).checkpoints.map((c) => c.seq)
  expect(await seqs({ minutes: 5 })).toEqual([3])
  expect(await seqs({ minutes: 15 })).toEqual([3, 2])
  expect(await seqs({ minutes: 60 })).toEqual([3, 2, 1])
  expect(await seqs({ minutes: 60, limit: 2 })).toEqual([3, 2])
  expect(await seqs({})).toEqual([3, 2, 1])
})
