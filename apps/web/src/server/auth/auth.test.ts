import { waitUntil } from '@floe/testkit'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import {
  passphrase,
  signInRequest,
  type ThrowawayConsole,
  throwawayConsole,
} from '../testing/throwaway-console'
import { openPaths } from './front-door'
import { LateChecks } from './late-checks'

/** Late checks are not run while a test lasts, unless it says otherwise. */
const HOUR_MS = 3_600_000
let it: ThrowawayConsole
beforeEach(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString'), late: new LateChecks(HOUR_MS) })
})
afterEach(() => it.close())

const signIn = (email: string, password: string, headers?: Record<string, string>) =>
  it.ports.auth.handler(signInRequest(it.webUrl, email, password, headers))

/** Takes all the places at which an address over its limits may wait: whoever comes there then is refused. */
async function crowd(email: string, headers?: Record<string, string>) {
  const guesses = Array.from({ length: 11 }, () => signIn(email, 'guess', headers))
  expect((await Promise.race(guesses)).status).toBe(429)
}

test('nobody can sign up', async () => {
  const response = await it.ports.auth.handler(
    new Request(`${it.webUrl}/api/auth/sign-up/email`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: it.webUrl, 'x-forwarded-for': '127.0.0.1' },
      body: JSON.stringify({ name: 'Eve', email: 'eve@example.org', password: passphrase }),
    }),
  )
  expect(response.ok).toBe(false)
  const { rows } = await it.database.pool.query(`SELECT 1 FROM "user" WHERE email = 'eve@example.org'`)
  expect(rows).toEqual([])
})

const deniedRows = async () =>
  (
    await it.database.pool.query(
      `SELECT detail->>'code' AS code FROM audit_event WHERE action = 'session.sign-in' AND outcome = 'denied' ORDER BY id`,
    )
  ).rows as { code: string }[]

test('guessing one account’s passphrase is slowed down, whatever address is stated, and every failure is audited', async () => {
  const { email } = await it.signedIn('viewer')
  const guess = (n: number, password: string) => signIn(email, password, { 'x-forwarded-for': `10.0.0.${n}` })
  for (let n = 1; n <= 5; n++) expect((await guess(n, 'not the passphrase')).status).toBe(401)
  await crowd(email, { 'x-forwarded-for': '10.0.0.6' })
  const refused = await guess(6, passphrase)
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await deniedRows()).toHaveLength(5)
  // somebody else's guesses are theirs
  expect((await signIn(email, passphrase, { 'x-floe-peer': '10.0.0.9' })).status).toBe(200)
})

test('guesses at the same moment count before they are answered', async () => {
  const { email } = await it.signedIn('viewer')
  const givenUp = new AbortController()
  const statuses: number[] = []
  const answers = Array.from({ length: 22 }, (_, n) =>
    it.ports.auth
      .handler(new Request(signInRequest(it.webUrl, email, `guess ${n}`), { signal: givenUp.signal }))
      .then(({ status }) => statuses.push(status)),
  )
  const counted = (status: number) => statuses.filter((s) => s === status).length
  await waitUntil('all are answered but those that wait', async () => statuses.length === 12)
  expect([counted(401), counted(429)]).toEqual([5, 7])
  givenUp.abort()
  await Promise.all(answers)
  expect([counted(401), counted(429)]).toEqual([5, 17])
})

test('who is over the limits gets in all the same, late, and strangers learn no more than before', async () => {
  const console = await throwawayConsole({
    engine: inject('engineConnectionString'),
    late: new LateChecks(20),
  })
  try {
    const { email } = await console.signedIn('viewer')
    const ask = (who: string, password: string) =>
      console.ports.auth.handler(signInRequest(console.webUrl, who, password))
    for (let n = 0; n < 5; n++) expect((await ask(email, 'guess')).status).toBe(401)
    // the one that has the passphrase among those that guess, all from the address of a proxy
    const answers = await Promise.all(
      [...Array(8).fill('guess'), passphrase].map((password) => ask(email, password)),
    )
    expect(answers.map((r) => r.status)).toEqual([...Array(8).fill(401), 200])
    for (let n = 0; n < 5; n++) await ask('nobody@example.org', 'guess')
    const late = await ask('nobody@example.org', 'guess')
    expect(late.status).toBe(401)
    expect(await late.json()).toEqual(await answers[0]?.json())
  } finally {
    await console.close()
  }
})

test('forms of another site’s page keep nobody out', async () => {
  const { email } = await it.signedIn('owner')
  for (let n = 0; n < 20; n++)
    expect((await signIn(email, 'wrong', { origin: 'https://evil.example', cookie: 'a=b' })).status).toBe(403)
  expect((await signIn(email, passphrase)).status).toBe(200)
})

test('a browser that was signed in before is not kept out by others behind the same proxy', async () => {
  const { email } = await it.signedIn('owner')
  const known = (await signIn(email, passphrase)).headers
    .getSetCookie()
    .filter((line) => line.startsWith('floe.known-'))
    .map((line) => line.split(';')[0] as string)
  expect(known).toHaveLength(1)
  for (let n = 0; n < 5; n++) await signIn(email, 'wrong')
  await crowd(email)
  expect((await signIn(email, passphrase)).status).toBe(429)
  expect((await signIn(email, passphrase, { cookie: known[0] as string })).status).toBe(200)
  // it opens nothing by itself, is bounded itself, and another account's or a forged one is none
  for (let n = 0; n < 5; n++)
    expect((await signIn(email, 'wrong', { cookie: known[0] as string })).status).toBe(401)
  await crowd(email, { cookie: known[0] as string })
  expect((await signIn(email, passphrase, { cookie: known[0] as string })).status).toBe(429)
  const forged = (known[0] as string).replace(/.$/, (c) => (c === '0' ? '1' : '0'))
  expect((await signIn(email, passphrase, { cookie: forged })).status).toBe(429)
})

test('nothing of better-auth is reachable but what the console uses, also what a later version adds', async () => {
  const { headers } = await it.signedIn('owner')
  const paths = Object.values(it.ports.auth.api as unknown as Record<string, { path?: string }>)
    .map((endpoint) => endpoint.path)
    .filter((path) => path !== undefined)
  expect(paths.length).toBeGreaterThan(30)
  for (const path of [...paths, '/added/later', '/sign-in/email/', '/%73ign-out', '//sign-out'])
    for (const method of ['GET', 'POST'] as const) {
      if (method === 'POST' && openPaths.includes(path)) continue
      const sent =
        method === 'POST'
          ? { body: '{}', headers: { ...headers, 'content-type': 'application/json' } }
          : { headers }
      const request = new Request(`${it.webUrl}/api/auth${path}`, { method, ...sent })
      expect([method, path, (await it.ports.auth.handler(request)).status]).toEqual([method, path, 404])
    }
  expect(openPaths.every((path) => paths.includes(path))).toBe(true)
})

test('the answer to a sign-in holds no session token', async () => {
  const { email, userId } = await it.signedIn('viewer')
  const response = await signIn(email, passphrase)
  expect(await response.json()).toEqual({ user: { id: userId, name: expect.any(String) } })
})

test('a sign-in with U+0000 is refused and leaves a row', async () => {
  const { email } = await it.signedIn('viewer')
  expect((await signIn('ada\0@example.org', passphrase)).status).toBe(400)
  expect((await signIn(email, `${passphrase}\0`)).status).toBe(400)
  expect(await deniedRows()).toEqual([{ code: 'input.invalid' }, { code: 'input.invalid' }])
})

test('a peer that fails with one account after the other is slowed down, whatever address it states', async () => {
  const { email } = await it.signedIn('viewer')
  const from = (n: number) => ({ 'x-floe-peer': '10.0.0.66', 'x-forwarded-for': `10.7.0.${n}` })
  for (let n = 1; n <= 30; n++)
    expect((await signIn(`nobody-${n}@example.org`, 'guess', from(n))).status).toBe(401)
  await crowd(email, from(31))
  expect((await signIn(email, passphrase, from(31))).status).toBe(429)
  expect((await signIn(email, passphrase, { 'x-floe-peer': '10.0.0.67' })).status).toBe(200)
  const { rows } = await it.database.pool.query(
    `SELECT count(*)::int AS n, min("ipAddress") AS "from" FROM audit_event WHERE outcome = 'denied'`,
  )
  expect(rows).toEqual([{ n: 30, from: '10.0.0.66, stated 10.7.0.1' }])
})

test('failed sign-ins write a bounded number of audit rows', async () => {
  for (let n = 1; n <= 70; n++)
    await signIn(`nobody-${n}@example.org`, 'guess', { 'x-floe-peer': `10.1.0.${n}` })
  const { rows } = await it.database.pool.query(
    `SELECT count(*)::int AS n FROM audit_event WHERE action = 'session.sign-in' AND outcome = 'denied'`,
  )
  expect(rows).toEqual([{ n: 60 }])
})

test('a sign-in sent by another site’s page is refused', async () => {
  const { email } = await it.signedIn('viewer')
  const response = await signIn(email, passphrase, { origin: 'https://evil.example', cookie: 'a=b' })
  expect(response.status).toBe(403)
})

test('after signing out the cookie opens nothing', async () => {
  const { headers, cookie } = await it.signedIn('operator')
  expect(await (await it.callerOf(headers)).account.me()).toMatchObject({ role: 'operator' })
  const response = await it.ports.auth.handler(
    new Request(`${it.webUrl}/api/auth/sign-out`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: it.webUrl, cookie },
      body: '{}',
    }),
  )
  expect(response.status).toBe(200)
  const { rows } = await it.database.pool.query(
    `SELECT outcome FROM audit_event WHERE action = 'session.sign-out'`,
  )
  expect(rows).toEqual([{ outcome: 'allowed' }])
  await expect((await it.callerOf(headers)).account.me()).rejects.toThrow('not signed in')
})

test('someone who is in no organisation sees nothing', async () => {
  const { headers, userId } = await it.signedIn('operator')
  await it.database.pool.query('DELETE FROM member WHERE "userId" = $1', [userId])
  await expect((await it.callerOf(headers)).account.me()).rejects.toThrow('not signed in')
})
