import { createHash, randomBytes } from 'node:crypto'
import {
  askHostUpgrade,
  cancelHostUpgrade,
  dropUnusedPackages,
  inTransaction,
  lastHostUpgrade,
  storePackagePiece,
} from '@floe/db'
import { EngineBuild, type HostPackage, PACKAGE_PIECE_BYTES } from '@floe/domain'
import { waitUntil } from '@floe/testkit'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import { actor, controllersFixture } from './testing/controllers-fixture'

const BOUND_MS = 60_000
const build = EngineBuild.parse('18.4-bbbb')

let fixture: Awaited<ReturnType<typeof controllersFixture>>
beforeEach(async () => {
  fixture = await controllersFixture(inject('engineConnectionString'))
})
afterEach(() => fixture.remove())

const digestOf = (content: Buffer) => createHash('sha256').update(content).digest('hex')
/** What the host has got, by the digest that it was named with; an assertion on the bytes themselves takes seconds. */
const brought = () =>
  Object.fromEntries([...fixture.host.packages].map(([digest, content]) => [digest, digestOf(content)]))

/** Packages of some pieces each, as an admin has stored them. */
async function stored() {
  const bytes = new Map<string, Buffer>()
  const packages: HostPackage[] = []
  for (const name of ['floe-agent', 'floe-engine', 'floe-engine-18.4-bbbb']) {
    const content = randomBytes(2 * PACKAGE_PIECE_BYTES + 7)
    const digest = digestOf(content)
    for (let number = 0; number * PACKAGE_PIECE_BYTES < content.length; number++)
      await storePackagePiece(fixture.db.as.web.pool, {
        ...{ digest, number },
        bytes: content.subarray(number * PACKAGE_PIECE_BYTES, (number + 1) * PACKAGE_PIECE_BYTES),
      })
    bytes.set(digest, content)
    packages.push({
      ...{ name, version: '1+b', architecture: 'amd64', distribution: 'debian-12' },
      ...{ sizeBytes: content.length, digest },
    })
  }
  return { packages, bytes, whole: Object.fromEntries([...bytes.keys()].map((digest) => [digest, digest])) }
}

const ask = (packages: HostPackage[]) =>
  inTransaction(fixture.db.as.web.pool, (tx) =>
    askHostUpgrade(tx, { hostId: fixture.host.hostId, build, switchBack: false, packages, actor }),
  )
const last = () => lastHostUpgrade(fixture.db.pool, fixture.host.hostId)
const ended = () =>
  waitUntil('the upgrade has ended', async () => ((await last())?.endedAt ? await last() : null), BOUND_MS)
const pieces = async () =>
  Number((await fixture.db.pool.query('SELECT count(*) AS n FROM package_piece')).rows[0].n)
const starts = (kind: string) =>
  [...fixture.host.tasks.values()].filter(({ input }) => input.task.kind === kind).length

test('packages are brought whole and installed once, then the instances’ turn comes, and nothing stays stored', async () => {
  const { packages, whole } = await stored()
  await ask(packages)
  for (let i = 0; i < 2; i++) fixture.start()
  expect(await ended()).toMatchObject({ fault: null, left: [], installed: { at: expect.any(Number) } })
  expect(brought()).toEqual(whole)
  expect(starts('install-packages')).toBe(1)
  expect(fixture.host.facts.engineBuild).toBe(build)
  await waitUntil('the pieces are dropped', async () => (await pieces()) === 0, BOUND_MS)
})

test('a controller that ends in the middle is followed by one that goes on where the host is', async () => {
  const { packages, bytes, whole } = await stored()
  // what an earlier one brought, with a piece that was cut off
  const [first] = packages as [HostPackage]
  fixture.host.packages.set(
    first.digest,
    (bytes.get(first.digest) as Buffer).subarray(0, PACKAGE_PIECE_BYTES + 99),
  )
  fixture.host.held = true
  await ask(packages)
  const one = fixture.start()
  await waitUntil('something is sent', () => starts('receive-package') > 0, BOUND_MS)
  await one.stop()
  fixture.host.held = false
  fixture.start()
  expect((await ended())?.fault).toBeNull()
  expect(brought()).toEqual(whole)
  expect(starts('install-packages')).toBe(1)
})

test('an agent that is away while its packages are installed is waited for', async () => {
  const { packages } = await stored()
  fixture.host.taskMs = 500
  await ask(packages)
  fixture.start()
  await waitUntil('they are being installed', () => starts('install-packages') === 1, BOUND_MS)
  await fixture.host.close()
  await waitUntil('that is said', async () => (await last())?.message?.includes('to answer'), BOUND_MS)
  expect((await last())?.endedAt).toBeNull()
  await fixture.reopen(fixture.host)
  expect((await ended())?.fault).toBeNull()
})

test('what the host refuses ends the upgrade with its words, and no instance is moved', async () => {
  const { packages } = await stored()
  const refusal = { code: 'package.downgrade', message: 'package "floe-agent" would go back' }
  fixture.host.failing.set('install-packages', refusal)
  await ask(packages)
  fixture.start()
  expect(await ended()).toMatchObject({ fault: refusal, installed: null, ordered: [] })
  await waitUntil('the pieces are dropped', async () => (await pieces()) === 0, BOUND_MS)
})

test('one that is cancelled before its packages are installed installs none', async () => {
  const { packages } = await stored()
  await ask(packages)
  await inTransaction(fixture.db.as.web.pool, (tx) => cancelHostUpgrade(tx, fixture.host.hostId))
  fixture.start()
  expect((await ended())?.fault?.code).toBe('host.upgrade_cancelled')
  expect(starts('install-packages')).toBe(0)
  expect(fixture.host.facts.packages).toBeUndefined()
})

test('a package of which a part is gone is not installed', async () => {
  const { packages } = await stored()
  await ask(packages)
  await fixture.db.pool.query('DELETE FROM package_piece WHERE number = 1')
  fixture.start()
  expect((await ended())?.fault?.code).toBe('package.not_stored')
  expect(starts('install-packages')).toBe(0)
})

test('an upload that no upgrade was asked for goes after an hour, and one that an open upgrade needs stays', async () => {
  const { packages } = await stored()
  expect(await dropUnusedPackages(fixture.db.as.controller.pool)).toBe(0)
  const [one, ...others] = packages as [HostPackage, ...HostPackage[]]
  await ask([one])
  await fixture.db.pool.query(`UPDATE package_piece SET "createdAt" = now() - interval '2 h'`)
  expect(await dropUnusedPackages(fixture.db.as.controller.pool)).toBe(3 * others.length)
  expect(await pieces()).toBe(3)
})
