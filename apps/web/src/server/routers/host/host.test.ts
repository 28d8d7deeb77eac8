import { randomUUID } from 'node:crypto'
import { enrolmentMessage } from '@floe/agent-contract'
import { certificateFits, fingerprintOf } from '@floe/authority/inspect'
import { makeRequest } from '@floe/authority/request'
import { makeEnrolmentToken, proveByToken } from '@floe/authority/token'
import { completeEnrolment, inTransaction, registerHost, takeUnsignedEnrolment } from '@floe/db'
import { HostId, HostName, hostUri, InstanceName } from '@floe/domain'
import { makeTestAuthority } from '@floe/testkit'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { enrol } from '../../enrol'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

const authority = await makeTestAuthority()
let it: ThrowawayConsole
let admin: Awaited<ReturnType<ThrowawayConsole['callerOf']>>
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString'), authority: authority.certificate })
  admin = await it.callerOf((await it.signedIn('admin')).headers)
})
afterAll(() => it.close())

let serial = 0
let name: HostName
beforeEach(() => {
  serial++
  name = HostName.parse(`host-${serial}`)
})

/** What an agent sends. */
async function asked(token: string, o: { agentUrl?: string; request?: string } = {}) {
  const { request, key } = await makeRequest()
  const sent = { request: o.request ?? request, agentUrl: o.agentUrl ?? `https://10.0.0.${serial}:3001` }
  return { key, sent: { ...sent, ...proveByToken(token, enrolmentMessage(sent)) } }
}
const send = async (body: unknown, headers: Record<string, string> = {}) => {
  const init = { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), headers }
  const response = await enrol(it.ports, new Request('http://console/api/enrol', init))
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}
/** What the controller does with the oldest request. */
const sign = () =>
  inTransaction(it.database.pool, async (tx) => {
    const enrolment = await takeUnsignedEnrolment(tx)
    if (!enrolment) throw new Error('nothing to sign')
    const { issueHostCertificate, inspectCertificate } = await import('@floe/authority')
    const pem = await issueHostCertificate(authority.signing, {
      request: enrolment.request,
      hostId: enrolment.hostId,
      addresses: [],
    })
    await completeEnrolment(tx, enrolment, { pem, ...inspectCertificate(pem) })
  })
async function enrolled(hostName: HostName) {
  const added = await admin.host.add({ name: hostName })
  await send((await asked(added.token)).sent)
  await sign()
  return added
}
const audit = async (objectId: string) =>
  (
    await it.database.pool.query<{ action: string; outcome: string }>(
      'SELECT action, outcome FROM audit_event WHERE "objectId" = $1 ORDER BY id',
      [objectId],
    )
  ).rows.map((row) => `${row.action} ${row.outcome}`)

describe('a token', () => {
  test('enrols one host: the request is taken, signed by the controller, and answered until then with pending', async () => {
    const added = await admin.host.add({ name })
    expect(added.command).toBe(
      `echo ${added.token} | ./floe agent enrol --console http://127.0.0.1:3999 --authority sha256:${fingerprintOf(authority.certificate)} --token -`,
    )
    expect(added.onlyLocal).toBe(true)
    expect(added.expiresAt - Date.now()).toBeGreaterThan(14 * 60_000)
    expect(added.expiresAt - Date.now()).toBeLessThan(15.1 * 60_000)
    expect((await admin.host.list()).enrolments).toMatchObject([
      { name, state: 'waiting', hostId: added.hostId },
    ])
    const { sent, key } = await asked(added.token)
    expect(await send(sent)).toEqual({ status: 200, body: { state: 'pending' } })
    expect((await admin.host.list()).enrolments).toMatchObject([{ name, state: 'signing' }])
    await sign()
    const { body } = await send(sent)
    expect(body).toMatchObject({ state: 'enrolled', hostId: added.hostId, hostName: name })
    expect(
      certificateFits(String(body.certificate), {
        authority: String(body.authority),
        key,
        uri: hostUri(added.hostId),
      }),
    ).toBe(true)
    const { hosts, enrolments } = await admin.host.list()
    expect(enrolments).toEqual([])
    expect(hosts.find((h) => h.name === name)).toMatchObject({
      agentUrl: `https://10.0.0.${serial}:3001`,
      state: 'unknown',
      own: false,
      revokedAt: null,
    })
    expect(await audit(added.hostId)).toEqual(['host.add allowed', 'host.enrol allowed'])
  })

  test('is kept nowhere, and its answer is the only place it is in', async () => {
    const { token } = await admin.host.add({ name })
    const { rows: tables } = await it.database.pool.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
        WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
    )
    for (const { name: table } of tables) {
      const { rows } = await it.database.pool.query(
        `SELECT 1 FROM ${table} t WHERE t::text LIKE '%' || $1 || '%'`,
        [token.slice(5)],
      )
      expect([table, rows.length]).toEqual([table, 0])
    }
  })

  test('is good for one request: the same one is answered again, another key or address never', async () => {
    const added = await admin.host.add({ name })
    const { sent } = await asked(added.token)
    const first = await Promise.all([1, 2, 3].map(() => send(sent)))
    expect(first.map((r) => r.status)).toEqual([200, 200, 200])
    for (const other of [
      (await asked(added.token)).sent,
      (await asked(added.token, { request: sent.request, agentUrl: 'https://10.9.9.9:3001' })).sent,
    ])
      expect(await send(other)).toMatchObject({ status: 403, body: { code: 'enrolment.token_used' } })
    expect(
      (
        await it.database.pool.query(
          `SELECT count(*)::int AS n FROM audit_event WHERE action = 'host.enrol' AND outcome = 'denied'
              AND detail->>'code' = 'enrolment.token_used'`,
        )
      ).rows,
    ).toEqual([{ n: 2 }])
    await sign()
  })

  test('of two requests at the same moment one gets it', async () => {
    const added = await admin.host.add({ name })
    const both = await Promise.all([1, 2, 3, 4].map(async () => send((await asked(added.token)).sent)))
    expect(both.filter((r) => r.status === 200)).toHaveLength(1)
    await sign()
  })

  test('that expired, was withdrawn, was replaced, or was never given out opens nothing', async () => {
    const expired = await admin.host.add({ name, minutes: 24 * 60 })
    expect(Math.abs(expired.expiresAt - Date.now() - 24 * 3_600_000)).toBeLessThan(60_000)
    await expect(admin.host.add({ name, minutes: 24 * 60 + 1 })).rejects.toThrow()
    await it.database.pool.query(
      `UPDATE host_enrolment SET "expiresAt" = now() - interval '1 second' WHERE id = $1`,
      [expired.enrolmentId],
    )
    expect((await send((await asked(expired.token)).sent)).body.code).toBe('enrolment.token_expired')
    const replaced = await admin.host.add({ name })
    const last = await admin.host.add({ name })
    expect((await send((await asked(replaced.token)).sent)).body.code).toBe('enrolment.token_withdrawn')
    await admin.host.withdraw({ enrolmentId: last.enrolmentId })
    expect((await send((await asked(last.token)).sent)).body.code).toBe('enrolment.token_withdrawn')
    expect((await send((await asked(makeEnrolmentToken())).sent)).body.code).toBe('enrolment.token_unknown')
    await expect(admin.host.withdraw({ enrolmentId: last.enrolmentId })).rejects.toThrow('does not exist')
  })

  test('and nothing else: a changed request, a wrong form, a long body', async () => {
    const added = await admin.host.add({ name })
    const { sent } = await asked(added.token)
    expect((await send({ ...sent, agentUrl: 'https://10.9.9.9:3001' })).body.code).toBe(
      'enrolment.bad_signature',
    )
    for (const body of [
      '',
      '{',
      '[]',
      { ...sent, agentUrl: 'http://10.0.0.1:1' },
      { ...sent, agentUrl: 'https://a/b:1' },
    ])
      expect((await send(body)).body.code).toBe('enrolment.invalid')
    expect((await send('x'.repeat(20_000))).body.code).toBe('enrolment.invalid')
    expect((await admin.host.list()).enrolments.find((e) => e.name === name)?.state).toBe('waiting')
  })
})

test('hosts are added and revoked by an admin or owner, and a denial leaves a row', async () => {
  const operator = await it.callerOf((await it.signedIn('operator')).headers)
  const hostId = HostId.parse(randomUUID())
  const tries = [
    () => operator.host.add({ name }),
    () => operator.host.revoke({ hostId, confirmName: name }),
    () => operator.host.remove({ hostId, confirmName: name }),
    () => operator.host.withdraw({ enrolmentId: randomUUID() }),
    () => operator.host.powerSupply({ hostId, powerSupply: 'A' }),
  ]
  for (const attempt of tries) await expect(attempt()).rejects.toThrow('role "operator" may not do this')
  const { rows } = await it.database.pool.query(
    `SELECT DISTINCT action FROM audit_event WHERE outcome = 'denied' AND action LIKE 'host.%' AND actor <> 'anonymous' ORDER BY 1`,
  )
  expect(rows.map((row) => row.action)).toEqual([
    'host.add',
    'host.powerSupply',
    'host.remove',
    'host.revoke',
    'host.withdraw',
  ])
  await expect((await it.callerOf()).host.add({ name })).rejects.toThrow('not signed in')
})

test('a person names the power supply of a host, and takes that back; each leaves a row', async () => {
  const { hostId } = await enrolled(name)
  const shown = async () => (await admin.host.show({ hostId })).host.powerSupply
  expect(await shown()).toBeNull()
  expect(await admin.host.powerSupply({ hostId, powerSupply: ' site A ' })).toEqual({
    hostId,
    name,
    powerSupply: 'site A',
  })
  expect(await shown()).toBe('site A')
  await admin.host.powerSupply({ hostId, powerSupply: null })
  expect(await shown()).toBeNull()
  expect(await audit(hostId)).toEqual(
    expect.arrayContaining(['host.powerSupply allowed', 'host.powerSupply allowed']),
  )
  for (const powerSupply of ['', '  ', 'x'.repeat(64), 'a\nb'])
    await expect(admin.host.powerSupply({ hostId, powerSupply })).rejects.toThrow()
  await expect(
    admin.host.powerSupply({ hostId: HostId.parse(randomUUID()), powerSupply: 'A' }),
  ).rejects.toThrow('does not exist')
})

test('a name is taken while its host is there, and its host can be enrolled again with its instances', async () => {
  const { hostId } = await enrolled(name)
  await expect(admin.host.add({ name })).rejects.toThrow(`host "${name}" already exists`)
  await expect(admin.host.add({ name: HostName.parse('nobody'), again: true })).rejects.toThrow(
    'does not exist',
  )
  await admin.host.revoke({ hostId, confirmName: name })
  const again = await admin.host.add({ name, again: true })
  expect(again.hostId).toBe(hostId)
  await send((await asked(again.token)).sent)
  await sign()
  expect((await admin.host.show({ name })).host).toMatchObject({ hostId, revokedAt: null, fault: null })
  const { rows } = await it.database.pool.query(
    'SELECT "revokedAt" IS NULL AS good FROM host_certificate WHERE "hostId" = $1 ORDER BY "issuedAt"',
    [hostId],
  )
  expect(rows).toEqual([{ good: false }, { good: true }])
})

test('revoking wants the name typed, is told at once, and makes what it runs unknown', async () => {
  const { hostId } = await enrolled(name)
  await it.database.pool.query(`UPDATE host SET "observedAt" = now() WHERE id = $1`, [hostId])
  const instance = InstanceName.parse(`on-${name}`)
  await it.database.pool.query(
    `INSERT INTO instance (id, name, "hostId", intent, state, "observedAt")
     VALUES (gen_random_uuid(), $1, $2, 'running', 'running', now())`,
    [instance, hostId],
  )
  expect((await admin.host.show({ name })).instanceList).toMatchObject([{ name: instance, state: 'running' }])
  await expect(admin.host.revoke({ hostId, confirmName: 'another' })).rejects.toThrow('is not the name')
  expect((await admin.host.show({ name })).host.state).toBe('online')
  await admin.host.revoke({ hostId, confirmName: name })
  const { host, instanceList } = await admin.host.show({ name })
  expect(host).toMatchObject({ state: 'unknown', revokedBy: 'The admin', fault: { code: 'host.revoked' } })
  expect(instanceList).toMatchObject([{ state: 'unknown', lastState: 'running' }])
  await expect(admin.host.revoke({ hostId, confirmName: name })).rejects.toThrow('was revoked')
  expect(await audit(hostId)).toContain('host.revoke allowed')
})

test('instances that still share a user on a host which could separate them are named', async () => {
  const { hostId } = await enrolled(name)
  const made = (which: string, user: object | null) =>
    it.database.pool.query(
      `INSERT INTO instance (id, name, "hostId", intent, observed) VALUES (gen_random_uuid(), $1, $2, 'running', $3)`,
      [`${which}-${name}`, hostId, user && JSON.stringify({ user })],
    )
  await made('shares', { name: 'floe', own: false, separable: true })
  await made('own', { name: 'floe-1', own: true, separable: true })
  await made('cannot', { name: 'ann', own: false, separable: false })
  await made('unseen', null)
  const { hosts } = await admin.host.list()
  expect(hosts.find((h) => h.hostId === hostId)).toMatchObject({
    instances: 4,
    sharedUser: [`shares-${name}`],
  })
})

test('only a revoked host can be removed; its name is free then and its instances are forgotten', async () => {
  const { hostId } = await enrolled(name)
  await it.database.pool.query(
    `INSERT INTO instance (id, name, "hostId", intent) VALUES (gen_random_uuid(), $1, $2, 'running')`,
    [`gone-${name}`, hostId],
  )
  await expect(admin.host.remove({ hostId, confirmName: name })).rejects.toThrow('still part of this console')
  await admin.host.revoke({ hostId, confirmName: name })
  // what is protected from deletion is not forgotten, either
  const protect = (on: boolean) => admin.cluster.deletionProtection({ name: `gone-${name}`, on })
  expect(await protect(true)).toMatchObject({ name: `gone-${name}`, on: true })
  await expect(admin.host.remove({ hostId, confirmName: name })).rejects.toThrow('has deletion protection')
  await protect(false)
  expect(await admin.host.remove({ hostId, confirmName: name })).toEqual({ hostId, name, instances: 1 })
  expect((await admin.host.list()).hosts.some((h) => h.name === name)).toBe(false)
  await expect(admin.host.show({ name })).rejects.toThrow('does not exist')
  await admin.host.add({ name })
})

test('a host is not removed while standbys elsewhere follow a primary on it', async () => {
  const { hostId } = await enrolled(name)
  const { hostId: other } = await enrolled(HostName.parse(`${name}-other`))
  const { pool } = it.database
  const { rows } = await pool.query(
    `INSERT INTO instance (id, name, "hostId", intent) VALUES (gen_random_uuid(), $1, $2, 'running'), (gen_random_uuid(), $3, $4, 'running')
     RETURNING id`,
    [`p-${name}`, hostId, `s-${name}`, other],
  )
  const cluster = randomUUID()
  await pool.query('INSERT INTO cluster (id, name, "primaryInstanceId") VALUES ($1, $2, $3)', [
    cluster,
    `c-${name}`,
    rows[0].id,
  ])
  await pool.query('UPDATE instance SET "clusterId" = $1 WHERE id = ANY ($2)', [
    cluster,
    rows.map((r) => r.id),
  ])
  await admin.host.revoke({ hostId, confirmName: name })
  await expect(admin.host.remove({ hostId, confirmName: name })).rejects.toThrow(
    `the primary of cluster "c-${name}" is on host "${name}"`,
  )
  await pool.query('UPDATE cluster SET "primaryInstanceId" = $2 WHERE id = $1', [cluster, rows[1].id])
  expect(await admin.host.remove({ hostId, confirmName: name })).toMatchObject({ instances: 1 })
})

test('the console’s own machine is neither enrolled, revoked nor removed', async () => {
  const hostId = HostId.parse(it.ports.files.installation.hostId)
  await registerHost(it.database.pool, { hostId, name: 'own', agentUrl: 'https://127.0.0.1:1' })
  const own = HostName.parse('own')
  await expect(admin.host.add({ name: own, again: true })).rejects.toThrow('console’s own machine')
  await expect(admin.host.revoke({ hostId, confirmName: own })).rejects.toThrow('own machine')
  await expect(admin.host.remove({ hostId, confirmName: own })).rejects.toThrow('own machine')
  expect((await admin.host.show({ name: own })).host).toMatchObject({ own: true, revokedAt: null })
})
