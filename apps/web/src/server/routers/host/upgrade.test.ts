import { insertTestInstance } from '@floe/db/testing'
import { HostId } from '@floe/domain'
import { TRPCError } from '@trpc/server'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { faultOf } from '../../faults'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterAll(() => it.close())

const build = 'release-2'
/** A host that reports its installed engine, with one instance that runs another build. */
async function host(current = false) {
  const { hostId, instanceId, name } = await insertTestInstance(it.database)
  const facts = {
    ...{ hostName: 'h', operatingSystem: 'Linux', kernel: '6', architecture: 'x86_64', cpus: 2 },
    ...{ memoryBytes: 1e9, memoryAvailableBytes: 1e9, loadAverage1: 0, uptimeSeconds: 1, disks: [] },
    ...{ supervision: 'detached', instancePorts: { from: 1, to: 2, used: 1 }, engineBuild: build },
  }
  await it.database.pool.query('UPDATE host SET facts = $2, "observedAt" = now() WHERE id = $1', [
    hostId,
    JSON.stringify(facts),
  ])
  const engine = { build: current ? build : 'release-1', running: current ? build : 'release-1', current }
  await it.database.pool.query(
    `UPDATE instance SET state = 'running', role = 'primary', observed = $2, "observedAt" = now() WHERE id = $1`,
    [instanceId, JSON.stringify({ engine })],
  )
  const { rows } = await it.database.pool.query<{ name: string }>('SELECT name FROM host WHERE id = $1', [
    hostId,
  ])
  return { hostId: HostId.parse(hostId), hostName: String(rows[0]?.name), name }
}
const codeOf = (asked: Promise<unknown>) =>
  asked.then(
    () => null,
    (error: unknown) => (error instanceof TRPCError ? faultOf(error).code : String(error)),
  )
const as = async (role: 'viewer' | 'operator') => it.callerOf((await it.signedIn(role)).headers)
const actions = async (hostId: string) =>
  (
    await it.database.pool.query<{ action: string }>(
      `SELECT action FROM audit_event WHERE "objectId" = $1 AND outcome = 'allowed' ORDER BY id`,
      [hostId],
    )
  ).rows.map(({ action }) => action)

test('a viewer reads the plan, which changes nothing, and orders nothing', async () => {
  const { hostId, hostName, name } = await host()
  const viewer = await as('viewer')
  const { plan, last } = await viewer.host.upgradePlan({ hostId })
  expect(plan).toMatchObject({ build, blocker: null, current: [] })
  expect(plan.clusters[0]?.steps).toMatchObject([{ action: 'restart-primary', member: name }])
  expect(last).toBeNull()
  expect((await viewer.host.show({ hostId })).instanceList[0]?.engine).toMatchObject({ current: false })
  expect(await codeOf(viewer.host.upgrade({ hostId, build, confirmName: hostName }))).not.toBeNull()
  expect(await actions(hostId)).toEqual([])
})

test('one that is asked for is the same for all who ask, leaves one row, and can be cancelled', async () => {
  const { hostId, hostName } = await host()
  const operator = await as('operator')
  const asked = await operator.host.upgrade({ hostId, build, confirmName: hostName })
  expect(asked.created).toBe(true)
  expect(await operator.host.upgrade({ hostId, build, confirmName: hostName })).toEqual({
    ...asked,
    created: false,
  })
  const other = operator.host.upgrade({ hostId, build, confirmName: hostName, switchBack: true })
  expect(await codeOf(other)).toBe('host.upgrade_open')
  expect((await operator.host.upgradePlan({ hostId })).last).toMatchObject({
    ...{ upgradeId: asked.upgradeId, build, switchBack: false, ordered: [], endedAt: null },
  })
  expect(await operator.host.cancelUpgrade({ hostId })).toEqual({ upgradeId: asked.upgradeId })
  expect((await operator.host.upgradePlan({ hostId })).last?.cancelAskedAt).not.toBeNull()
  expect(await actions(hostId)).toEqual(['host.upgrade', 'host.cancelUpgrade'])
})

test('what was not confirmed, is about another build, or has nothing to do is refused, and leaves nothing', async () => {
  const operator = await as('operator')
  const { hostId, hostName } = await host()
  const upgrade = (more: object) => operator.host.upgrade({ hostId, build, confirmName: hostName, ...more })
  expect(await codeOf(upgrade({ confirmName: 'other' }))).toBe('host.name_mismatch')
  expect(await codeOf(upgrade({ build: 'release-3' }))).toBe('engine.not_installed')
  expect(await codeOf(upgrade({ build: '../../evil' }))).toBe('input.invalid')
  expect(await codeOf(operator.host.cancelUpgrade({ hostId }))).toBe('host.no_upgrade')
  await it.database.pool.query(`UPDATE host SET "observedAt" = now() - interval '1 min' WHERE id = $1`, [
    hostId,
  ])
  expect(await codeOf(upgrade({}))).toBe('host.silent')
  const done = await host(true)
  const nothing = operator.host.upgrade({ hostId: done.hostId, build, confirmName: done.hostName })
  expect(await codeOf(nothing)).toBe('host.nothing_to_upgrade')
  for (const id of [hostId, done.hostId]) {
    expect((await operator.host.upgradePlan({ hostId: id })).last).toBeNull()
    expect(await actions(id)).toEqual([])
  }
})
