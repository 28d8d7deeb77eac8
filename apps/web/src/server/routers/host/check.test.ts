import { randomUUID } from 'node:crypto'
import { endHostCheck, inTransaction, takeHostChecks } from '@floe/db'
import { insertTestInstance } from '@floe/db/testing'
import { type Fault, HostCheck, HostId } from '@floe/domain'
import { waitUntil } from '@floe/testkit'
import { TRPCError } from '@trpc/server'
import { afterAll, afterEach, beforeAll, expect, inject, test, vi } from 'vitest'
import { faultOf } from '../../faults'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterAll(() => it.close())
afterEach(() => {
  vi.restoreAllMocks()
})

const host = async () => HostId.parse((await insertTestInstance(it.database)).hostId)
const check = HostCheck.parse({
  ...{ version: 1, host: 'db-1', kernel: '6', cpus: 2, memoryBytes: 1e9, container: false, disks: [] },
  lines: [
    {
      ...{
        name: 'durability of /data',
        group: 'disk',
        actual: 'nobarrier',
        wanted: 'none',
        severity: 'fault',
      },
      ...{ why: 'commits can be lost', command: null },
    },
  ],
})
/** What a controller does with the next check. */
const endNext = (end: { check: HostCheck } | { fault: Fault }) =>
  waitUntil('a check is asked', async () => {
    const [taken] = await takeHostChecks(it.database.pool, { leaseMs: 10_000, limit: 1 })
    if (taken) await inTransaction(it.database.pool, (tx) => endHostCheck(tx, taken.checkId, end))
    return taken
  })
/** From now on so many have asked and wait: who asks after a check has ended asks for another one. */
const waited = () => {
  const onCheck = vi.spyOn(it.ports.changes, 'onCheck')
  return (count: number) => waitUntil(`${count} wait`, () => onCheck.mock.calls.length === count)
}
const codeOf = (asked: Promise<unknown>) =>
  asked.then(
    () => null,
    (error: unknown) => (error instanceof TRPCError ? faultOf(error).code : String(error)),
  )
const rows = async (hostId: string) =>
  (
    await it.database.pool.query(
      `SELECT actor, outcome FROM audit_event WHERE action = 'host.check' AND "objectId" = $1 ORDER BY id`,
      [hostId],
    )
  ).rows

test('a check is carried out once for all who ask, kept with the host with its time, and leaves one row', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const hostId = await host()
  expect((await caller.host.show({ hostId })).check).toEqual({ last: null, failed: null, openSince: null })
  const before = Date.now()
  const waiting = waited()
  const asked = [1, 2, 3].map(() => caller.host.check({ hostId }))
  await waiting(3)
  await endNext({ check })
  for (const answer of await Promise.all(asked)) expect(answer.last?.check).toEqual(check)
  const shown = (await caller.host.show({ hostId })).check
  expect(shown).toMatchObject({ last: { check }, failed: null, openSince: null })
  expect(shown.last?.at).toBeGreaterThan(before - 5_000)
  expect(await rows(hostId)).toMatchObject([{ outcome: 'allowed' }])
})

test('one that tells nothing is thrown, and what an earlier one told stays with its time', async () => {
  const caller = await it.callerOf((await it.signedIn('operator')).headers)
  const hostId = await host()
  const first = caller.host.check({ hostId })
  await endNext({ check })
  const { last } = await first
  const second = codeOf(caller.host.check({ hostId }))
  await endNext({ fault: { code: 'agent.unreachable', message: 'the agent does not answer' } })
  expect(await second).toBe('agent.unreachable')
  expect((await caller.host.show({ hostId })).check).toMatchObject({
    last,
    failed: { fault: { code: 'agent.unreachable' } },
  })
})

test('without a controller it is said so in time; a viewer, a revoked host and none are refused', async () => {
  const { headers } = await it.signedIn('operator')
  const hasty = await it.callerOf(headers, { checkTimes: { takenMs: 50, answeredMs: 60_000 } })
  const hostId = await host()
  expect(await codeOf(hasty.host.check({ hostId }))).toBe('host.check_not_taken')
  // the check that nobody took is still to be taken
  const waiting = waited()
  const again = (await it.callerOf(headers)).host.check({ hostId })
  await waiting(1)
  await endNext({ check })
  expect((await again).last?.check).toEqual(check)
  const viewer = await it.callerOf((await it.signedIn('viewer')).headers)
  await expect(viewer.host.check({ hostId })).rejects.toThrow('role "viewer" may not do this')
  expect((await viewer.host.show({ hostId })).check.last?.check).toEqual(check)
  await it.database.pool.query(`UPDATE host SET "revokedAt" = now(), "revokedBy" = 'x' WHERE id = $1`, [
    hostId,
  ])
  expect(await codeOf(hasty.host.check({ hostId }))).toBe('host.revoked')
  expect(await codeOf(hasty.host.check({ hostId: HostId.parse(randomUUID()) }))).toBe('host.not_found')
})
