import { createHash, randomBytes } from 'node:crypto'
import { insertTestInstance } from '@floe/db/testing'
import { HostId, type HostPackage, PACKAGE_PIECE_BYTES } from '@floe/domain'
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
const as = async (role: 'viewer' | 'operator' | 'admin') => it.callerOf((await it.signedIn(role)).headers)
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

/** A host that was made from packages, with the agent's of an earlier version. */
async function packagedHost() {
  const made = await host(true)
  await it.database.pool.query(
    `UPDATE host SET capabilities = '{task.install-packages}', facts = facts || $2::jsonb WHERE id = $1`,
    [
      made.hostId,
      JSON.stringify({
        supervision: 'systemd',
        packages: {
          ...{ distribution: 'debian-12', architecture: 'amd64', accepted: true },
          installed: [{ name: 'floe-agent', version: '0.1.0+2.b', status: 'installed' }],
        },
      }),
    ],
  )
  return made
}
const content = randomBytes(PACKAGE_PIECE_BYTES + 10)
const brought = (more: Partial<HostPackage> = {}): HostPackage => ({
  ...{ name: 'floe-agent', version: '0.1.0+3.c', architecture: 'amd64', distribution: 'debian-12' },
  ...{ sizeBytes: content.length, digest: createHash('sha256').update(content).digest('hex') },
  ...more,
})
async function store(digest = brought().digest, bytes = content) {
  const admin = await as('admin')
  for (let number = 0; number * PACKAGE_PIECE_BYTES < bytes.length; number++)
    await admin.host.storePackagePiece({
      ...{ digest, number },
      data: bytes
        .subarray(number * PACKAGE_PIECE_BYTES, (number + 1) * PACKAGE_PIECE_BYTES)
        .toString('base64'),
    })
}
const piecesOf = async (digest: string) =>
  (await it.database.pool.query('SELECT FROM package_piece WHERE digest = $1', [digest])).rowCount

test('packages are stored and brought by an admin only, by a row that names them', async () => {
  const { hostId, hostName } = await packagedHost()
  const packages = [brought()]
  const operator = await as('operator')
  const input = { hostId, build, confirmName: hostName, packages }
  const piece = { digest: brought().digest, number: 0, data: 'AAAA' }
  expect(await codeOf(operator.host.storePackagePiece(piece))).toBe('session.role_too_low')
  expect(await codeOf(operator.host.upgradeWithPackages(input))).toBe('session.role_too_low')
  // everybody may read what it would do
  expect((await operator.host.upgradePlan({ hostId, packages })).plan.packages).toEqual([
    { name: 'floe-agent', from: '0.1.0+2.b', to: '0.1.0+3.c', change: 'upgrade' },
  ])
  const admin = await as('admin')
  await store()
  expect(await codeOf(admin.host.upgradeWithPackages({ ...input, confirmName: 'x' }))).toBe(
    'host.name_mismatch',
  )
  const asked = await admin.host.upgradeWithPackages(input)
  expect(await admin.host.upgradeWithPackages(input)).toEqual({ ...asked, created: false })
  expect(await codeOf(admin.host.upgradeWithPackages({ ...input, downgrade: true }))).toBe(
    'host.upgrade_open',
  )
  expect((await admin.host.upgradePlan({ hostId })).last).toMatchObject({ packages, installed: null })
  expect(await actions(hostId)).toEqual(['host.upgradeWithPackages'])
})

test('what is not stored as it was named is refused, and dropped', async () => {
  const { hostId, hostName } = await packagedHost()
  const admin = await as('admin')
  const upgrade = (packages: HostPackage[]) =>
    codeOf(admin.host.upgradeWithPackages({ hostId, build, confirmName: hostName, packages }))
  const other = 'c'.repeat(64)
  expect(await upgrade([brought({ digest: other })])).toBe('package.not_stored')
  await store(other)
  expect(await upgrade([brought({ digest: other })])).toBe('package.not_stored')
  expect(await piecesOf(other)).toBe(0)
  await store()
  expect(await upgrade([brought({ sizeBytes: content.length - 1 })])).toBe('package.not_stored')
  const large = { digest: other, number: 0, data: Buffer.alloc(PACKAGE_PIECE_BYTES + 3).toString('base64') }
  expect(await codeOf(admin.host.storePackagePiece(large))).toBe('input.invalid')
  expect(await codeOf(admin.host.storePackagePiece({ ...large, data: '' }))).toBe('package.piece_size')
  expect(await actions(hostId)).toEqual([])
})

test('a host that takes no packages, a downgrade and packages of another machine are refused before anything is sent', async () => {
  const admin = await as('admin')
  await store()
  const plain = await host(true)
  const { hostId, hostName } = await packagedHost()
  const blocked = async (of: HostId, packages: HostPackage[], downgrade = false) =>
    (await admin.host.upgradePlan({ hostId: of, packages, downgrade })).plan.blocker?.code ?? null
  expect(await blocked(plain.hostId, [brought()])).toBe('host.older_agent')
  await it.database.pool.query(`UPDATE host SET capabilities = '{task.install-packages}' WHERE id = $1`, [
    plain.hostId,
  ])
  expect(await blocked(plain.hostId, [brought()])).toBe('host.not_packaged')
  const earlier = [brought({ version: '0.1.0+1.a' })]
  expect(await blocked(hostId, earlier)).toBe('package.downgrade')
  expect(await blocked(hostId, earlier, true)).toBeNull()
  expect(await blocked(hostId, [brought({ distribution: 'ubuntu-24.04' })])).toBe('package.other_machine')
  const refused = admin.host.upgradeWithPackages({ hostId, build, confirmName: hostName, packages: earlier })
  expect(await codeOf(refused)).toBe('package.downgrade')
  const installed = [brought({ version: '0.1.0+2.b' })]
  const nothing = admin.host.upgradeWithPackages({
    hostId,
    build,
    confirmName: hostName,
    packages: installed,
  })
  expect(await codeOf(nothing)).toBe('host.nothing_to_upgrade')
})
