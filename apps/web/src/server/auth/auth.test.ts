import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import {
  passphrase,
  signInRequest,
  type ThrowawayConsole,
  throwawayConsole,
} from '../testing/throwaway-console'

let it: ThrowawayConsole
beforeEach(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterEach(() => it.close())

const signIn = (email: string, password: string, headers?: Record<string, string>) =>
  it.ports.auth.handler(signInRequest(it.webUrl, email, password, headers))

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

test('guessing one account’s passphrase from many addresses is slowed down, and every failure is audited', async () => {
  const { email } = await it.signedIn('viewer')
  const guess = (n: number, password: string) => signIn(email, password, { 'x-forwarded-for': `10.0.0.${n}` })
  for (let n = 1; n <= 5; n++) expect((await guess(n, 'not the passphrase')).status).toBe(401)
  expect((await guess(6, passphrase)).status).toBe(429)
  const { rows } = await it.database.pool.query(
    `SELECT count(*)::int AS n FROM audit_event WHERE action = 'session.sign-in' AND outcome = 'denied'`,
  )
  expect(rows[0].n).toBeGreaterThanOrEqual(5)
})

test('a peer that fails with one account after the other is slowed down, whatever address it states', async () => {
  const { email } = await it.signedIn('viewer')
  const from = (n: number) => ({ 'x-floe-peer': '10.0.0.66', 'x-forwarded-for': `10.7.0.${n}` })
  for (let n = 1; n <= 30; n++)
    expect((await signIn(`nobody-${n}@example.org`, 'guess', from(n))).status).toBe(401)
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
  await expect((await it.callerOf(headers)).account.me()).rejects.toThrow('not signed in')
})

test('someone who is in no organisation sees nothing', async () => {
  const { headers, userId } = await it.signedIn('operator')
  await it.database.pool.query('DELETE FROM member WHERE "userId" = $1', [userId])
  await expect((await it.callerOf(headers)).account.me()).rejects.toThrow('not signed in')
})
