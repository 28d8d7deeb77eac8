import { insertStalls } from '@floe/db'
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

test('the stalls of the last minutes are those that reach into them, newest first, each with its cause', async () => {
  const instanceId = InstanceId.parse((await insertTestInstance(it.database)).instanceId)
  const now = Date.now()
  const common = { sessions: 4, waits: [{ type: 'IO', event: 'WalSync', count: 9 }], checkpoint: null }
  const stalls = [
    { cause: 'lock', device: null, from: 30, to: 29 },
    { cause: 'checkpointer', device: null, from: 12, to: 10 },
    { cause: 'checkpointer', device: null, from: 7, to: 6, hangsIn: 'percpu_rwsem_wait' },
    { cause: 'limited-device', device: 'nvme0n1', from: 2, to: 1 },
  ] as const
  const rows = stalls.map(({ cause, device, from, to, ...more }, seq) => ({
    ...common,
    seq: seq + 1,
    cause,
    device,
    checkpointerStopped: cause === 'checkpointer' && !('hangsIn' in more),
    checkpointerHangsIn: 'hangsIn' in more ? more.hangsIn : null,
    startedAt: now - from * minute,
    endedAt: now - to * minute,
  }))
  expect(await insertStalls(it.database.pool, instanceId, rows)).toBe(4)
  expect(await insertStalls(it.database.pool, instanceId, rows)).toBe(0)
  const caller = await it.callerOf((await it.signedIn('viewer')).headers)
  const list = async (asked: object) => (await caller.stall.list({ instanceId, ...asked })).stalls
  const waited = 'IO:WalSync 100 %'
  expect(await list({})).toEqual([
    { ...rows[3], reason: 'a device at its limit (nvme0n1)', waited },
    { ...rows[2], reason: 'the checkpointer, which hangs in the kernel (percpu_rwsem_wait)', waited },
    { ...rows[1], reason: 'the checkpointer, which is stopped', waited },
    { ...rows[0], reason: 'a lock', waited },
  ])
  expect((await list({ minutes: 11 })).map((s) => s.seq)).toEqual([4, 3, 2])
  expect((await list({ from: now - 29.5 * minute, to: now - 11 * minute })).map((s) => s.seq)).toEqual([2, 1])
})
