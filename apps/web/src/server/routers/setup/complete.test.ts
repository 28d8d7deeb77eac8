import { randomBytes } from 'node:crypto'
import { hashToken } from '@floe/db'
import { afterEach, beforeEach, expect, inject, test, vi } from 'vitest'
import {
  passphrase,
  signInRequest,
  type ThrowawayConsole,
  throwawayConsole,
} from '../../testing/throwaway-console'

const hashed = vi.hoisted(() => vi.fn())
vi.mock('better-auth/crypto', async (original) => {
  const real = await original<typeof import('better-auth/crypto')>()
  return {
    ...real,
    hashPassword: (passphrase: string) => {
      hashed()
      return real.hashPassword(passphrase)
    },
  }
})

let it: ThrowawayConsole
beforeEach(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString'), hashEachTime: true })
})
afterEach(() => it.close())

async function link(expires = '1 hour') {
  const token = randomBytes(24).toString('base64url')
  await it.database.pool.query(
    `INSERT INTO setup_link (id, "tokenHash", "expiresAt") VALUES (gen_random_uuid(), $1, now() + $2::interval)`,
    [hashToken(token), expires],
  )
  return token
}
const owner = { name: 'Olga Owner', email: 'Olga@Example.org', passphrase }
const users = async () =>
  (await it.database.pool.query('SELECT count(*)::int AS n FROM "user"')).rows[0].n as number

test('a set-up link makes the owner, who can sign in and change things', async () => {
  const token = await link()
  const caller = await it.callerOf()
  expect(await caller.setup.status({ token })).toEqual({ ownerExists: false, link: 'valid' })
  expect(await caller.setup.complete({ token, ...owner })).toEqual({ email: 'olga@example.org' })
  const signIn = (given: string) => it.ports.auth.handler(signInRequest(it.webUrl, 'olga@example.org', given))
  expect((await signIn(`${passphrase}r`)).status).toBe(401)
  const response = await signIn(passphrase)
  expect(response.status).toBe(200)
  const cookie = response.headers.getSetCookie().join('; ')
  expect(cookie).toMatch(/HttpOnly/i)
  expect(cookie).toMatch(/SameSite=Lax/i)
  const signedIn = await it.callerOf({ cookie: cookie.split(';')[0] as string })
  expect(await signedIn.account.me()).toMatchObject({ kind: 'user', name: 'Olga Owner', role: 'owner' })
})

test('a set-up link works once, also when it is used several times at the same moment', async () => {
  const token = await link()
  const caller = await it.callerOf()
  const tries = await Promise.allSettled(
    [1, 2, 3, 4].map((n) => caller.setup.complete({ token, ...owner, email: `o${n}@example.org` })),
  )
  expect(tries.filter((t) => t.status === 'fulfilled')).toHaveLength(1)
  expect(await users()).toBe(1)
  await expect(caller.setup.complete({ token, ...owner })).rejects.toThrow('already used')
  expect(await caller.setup.status({ token })).toEqual({ ownerExists: true, link: 'used' })
})

test('an expired, an unknown, and a second link make nobody', async () => {
  const caller = await it.callerOf()
  await expect(caller.setup.complete({ token: await link('-1 second'), ...owner })).rejects.toThrow('expired')
  await expect(caller.setup.complete({ token: 'made-up', ...owner })).rejects.toThrow('not known')
  expect(await users()).toBe(0)
  const [first, second] = [await link(), await link()]
  await caller.setup.complete({ token: first, ...owner })
  await expect(caller.setup.complete({ token: second, ...owner, email: 'b@example.org' })).rejects.toThrow(
    'already has an owner',
  )
  expect(await users()).toBe(1)
})

test('a link that does not work costs no hash of the passphrase', async () => {
  const caller = await it.callerOf()
  const [owned, expired] = [await link(), await link('-1 second')]
  await caller.setup.complete({ token: owned, ...owner })
  const second = await link()
  hashed.mockClear()
  for (const token of ['made-up', expired, owned, second])
    await expect(caller.setup.complete({ token, ...owner })).rejects.toThrow()
  expect(hashed).not.toHaveBeenCalled()
})

test('a refused passphrase leaves the link usable', async () => {
  const token = await link()
  const caller = await it.callerOf()
  await expect(caller.setup.complete({ token, ...owner, passphrase: 'short' })).rejects.toThrow()
  await caller.setup.complete({ token, ...owner })
})
