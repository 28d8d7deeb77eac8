import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { IdentityFile } from '@floe/agent-contract'
import { certificateFits, fingerprintOf, identityIsGood, makeRequest } from '@floe/authority'
import { insertEnrolment, inTransaction, showEnrolment, showHost, takeEnrolment } from '@floe/db'
import { createTestDatabase, type TestDatabase } from '@floe/db/testing'
import { HostName, hostUri, rightUri, secretFiles } from '@floe/domain'
import {
  makeScratchDirectory,
  makeTestAuthority,
  makeThrowawayHome,
  ThrowawayAgent,
  waitUntil,
} from '@floe/testkit'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { startController } from './controller'
import { actor, controllersFixture, keptLog } from './testing/controllers-fixture'
import { addressRule } from './webhook-address'

describe('requests of hosts that have a token', () => {
  let fixture: Awaited<ReturnType<typeof controllersFixture>>
  beforeEach(async () => {
    fixture = await controllersFixture(inject('engineConnectionString'))
  })
  afterEach(() => fixture.remove())

  /** A token's row with a request, as the web writes both. */
  async function requested(name: string, request: string, o: { again?: boolean } = {}) {
    const enrolmentId = randomUUID()
    const tokenHash = randomUUID()
    const agentUrl = `https://10.0.0.${Math.floor(Math.random() * 250)}:3001`
    await inTransaction(fixture.db.pool, async (tx) => {
      await insertEnrolment(tx, {
        enrolmentId,
        hostId: randomUUID(),
        name: HostName.parse(name),
        again: o.again ?? false,
        tokenHash,
        actor,
        minutes: 15,
      })
      await takeEnrolment(tx, { tokenHash, request, agentUrl, ipAddress: null })
    })
    const ended = () =>
      waitUntil('it is signed or refused', async () => {
        const seen = await showEnrolment(fixture.db.pool, enrolmentId)
        return seen?.state === 'enrolled' || seen?.state === 'failed' ? seen : null
      })
    const certificate = async () =>
      (await fixture.db.pool.query('SELECT certificate FROM host_enrolment WHERE id = $1', [enrolmentId]))
        .rows[0].certificate as string
    return { enrolmentId, agentUrl, ended, certificate }
  }

  test('are signed once, however many controllers run, and make the host’s row', async () => {
    const { key, request } = await makeRequest()
    fixture.start()
    fixture.start()
    const asked = await requested('new-host', request)
    const { state, hostId } = await asked.ended()
    expect(state).toBe('enrolled')
    const pem = await asked.certificate()
    const authority = fixture.authority.certificate
    expect(certificateFits(pem, { authority, key, uri: hostUri(hostId) })).toBe(true)
    expect(await showHost(fixture.db.pool, hostId)).toMatchObject({
      name: 'new-host',
      agentUrl: asked.agentUrl,
    })
    const { rows } = await fixture.db.pool.query(
      'SELECT fingerprint FROM host_certificate WHERE "hostId" = $1',
      [hostId],
    )
    expect(rows).toEqual([{ fingerprint: fingerprintOf(pem) }])
  })

  test('that came while no controller ran are signed when one does', async () => {
    const asked = await requested('patient', (await makeRequest()).request)
    fixture.start()
    expect((await asked.ended()).state).toBe('enrolled')
  })

  test('that are none, or whose name was taken meanwhile, are refused with the reason; the next one is not held up', async () => {
    const bad = await requested('bad', 'not a request')
    const taken = await requested('taken', (await makeRequest()).request)
    await fixture.db.pool.query(
      `INSERT INTO host (id, name, "agentUrl") VALUES (gen_random_uuid(), 'taken', 'https://127.0.0.1:1')`,
    )
    const good = await requested('good', (await makeRequest()).request)
    fixture.start()
    expect(await bad.ended()).toMatchObject({ state: 'failed', fault: { code: 'certificate.bad_request' } })
    expect(await taken.ended()).toMatchObject({ state: 'failed', fault: { code: 'host.name_taken' } })
    expect((await good.ended()).state).toBe('enrolled')
  })
})

describe('renewal', () => {
  let scratch: ReturnType<typeof makeScratchDirectory>
  let db: TestDatabase
  beforeEach(async () => {
    scratch = makeScratchDirectory()
    db = await createTestDatabase(inject('engineConnectionString'))
  })
  afterEach(async () => {
    await db.drop()
    scratch.remove()
  })

  test('an agent’s certificate is renewed again and again by itself, and it is online all the time', async () => {
    const home = await makeThrowawayHome()
    const { hostId } = home.installation
    const lifetimeMs = 12_000
    const file = join(home.home, 'secrets', secretFiles.agentIdentity)
    writeFileSync(file, await home.authority.host(hostId, { lifetimeMs }))
    const first = fingerprintOf(readFileSync(file, 'utf8'))
    const agent = new ThrowawayAgent(home, inject('agentBundle'))
    await agent.start()
    const { pid } = agent
    const controller = startController({
      connectionString: db.as.controller.connectionString,
      authority: home.authority.signing,
      identity: () => home.identities.task,
      authSecret: 'a secret of the tests',
      webhookRule: addressRule([], ['127.0.0.1']),
      host: { hostId, name: 'own', agentUrl: home.agentUrl },
      log: keptLog(),
      certificateLifetimeMs: lifetimeMs,
    })
    try {
      const issued = async () =>
        (await db.pool.query<{ n: number }>('SELECT count(*)::int AS n FROM host_certificate')).rows[0]?.n ??
        0
      await waitUntil('it is seen', async () => (await showHost(db.pool, hostId))?.state === 'online')
      const states = new Set<string | undefined>()
      // by then the first one has long expired
      await waitUntil(
        'it is renewed four times',
        async () => {
          states.add((await showHost(db.pool, hostId))?.state)
          return (await issued()) >= 4
        },
        90_000,
        200,
      )
      expect([...states]).toEqual(['online'])
      const now = fingerprintOf(readFileSync(file, 'utf8'))
      expect(now).not.toBe(first)
      expect(agent.pid).toBe(pid)
      const host = await showHost(db.pool, hostId)
      expect(host?.certificateEndsAt?.getTime()).toBeGreaterThan(Date.now())
      const { rows } = await db.pool.query('SELECT 1 FROM host_certificate WHERE fingerprint = $1', [now])
      expect(rows).toHaveLength(1)
    } finally {
      await controller.stop()
      await agent.remove()
    }
  }, 120_000)

  test('web’s certificate and the controller’s own are replaced in their files before they end, and used at once', async () => {
    const authority = await makeTestAuthority()
    const { path } = scratch
    const files = { task: join(path, 'controller.pem'), read: join(path, 'web.pem') } as const
    const old = { lifetimeMs: 60_000, now: Date.now() - 40_000 }
    for (const right of ['task', 'read'] as const)
      writeFileSync(files[right], await authority.console(right, old), { mode: 0o600 })
    const own = new IdentityFile(files.task)
    const before = own.read()
    const controller = startController({
      connectionString: db.as.controller.connectionString,
      authority: authority.signing,
      identity: () => own.read(),
      renew: [
        { right: 'task', file: own },
        { right: 'read', file: new IdentityFile(files.read) },
      ],
      authSecret: 'a secret of the tests',
      webhookRule: addressRule([], ['127.0.0.1']),
      host: { hostId: randomUUID(), name: 'own', agentUrl: 'https://127.0.0.1:1' },
      log: keptLog(),
    })
    try {
      for (const right of ['task', 'read'] as const)
        await waitUntil(`the certificate that may ${right} is good`, () =>
          identityIsGood(readFileSync(files[right], 'utf8'), {
            authority: authority.certificate,
            uri: rightUri(right),
          }),
        )
      expect(own.read()).not.toBe(before)
    } finally {
      await controller.stop()
    }
  })
})
