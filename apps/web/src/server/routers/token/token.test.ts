import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type ThrowawayConsole, throwawayConsole } from '../../testing/throwaway-console'

let it: ThrowawayConsole
beforeAll(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterAll(() => it.close())

const signedIn = async (role: Parameters<ThrowawayConsole['signedIn']>[0]) => {
  const person = await it.signedIn(role)
  return { ...person, caller: await it.callerOf(person.headers) }
}
const withSecret = (secret: string) => it.callerOf({ authorization: `Bearer ${secret}` })
const names = async (caller: Awaited<ReturnType<ThrowawayConsole['callerOf']>>) =>
  (await caller.token.list()).tokens.map((t) => t.name)

test('a token may what its role says, never more than its maker does now, and nothing after its end', async () => {
  const { caller, userId } = await signedIn('admin')
  const { secret, tokenId } = await caller.token.create({ name: 'deploy', role: 'admin', days: 1 })
  const me = async () => (await withSecret(secret)).account.me()
  expect(await me()).toMatchObject({
    kind: 'token',
    role: 'admin',
    name: expect.stringMatching(/^token of .+: deploy$/),
  })
  const { pool } = it.database
  const demote = (role: string) =>
    pool.query('UPDATE member SET role = $2 WHERE "userId" = $1', [userId, role])
  await demote('viewer')
  expect(await me()).toMatchObject({ role: 'viewer' })
  // nor does it rise with its maker
  await demote('owner')
  expect(await me()).toMatchObject({ role: 'admin' })
  await pool.query('DELETE FROM member WHERE "userId" = $1', [userId])
  await expect(me()).rejects.toThrow('not signed in')
  await pool.query(
    `INSERT INTO member (id, "organizationId", "userId", role) SELECT gen_random_uuid(), id, $1, 'admin' FROM organization`,
    [userId],
  )
  expect(await me()).toMatchObject({ role: 'admin' })
  await pool.query(`UPDATE api_token SET "expiresAt" = now() - interval '1 ms' WHERE id = $1`, [tokenId])
  await expect(me()).rejects.toThrow('not signed in')
  const rows = JSON.stringify([
    (await pool.query('SELECT * FROM api_token')).rows,
    (await pool.query('SELECT * FROM audit_event')).rows,
  ])
  expect(rows).not.toContain(secret)
})

test('nobody makes a token above their own role, and no token makes tokens', async () => {
  const { caller: operator } = await signedIn('operator')
  await expect(operator.token.create({ name: 'too much', role: 'admin' })).rejects.toThrow(
    'role "operator" may not do this',
  )
  await expect(operator.token.create({ name: 'all', role: 'owner' as never })).rejects.toThrow()
  await expect(operator.token.create({ name: 'old', role: 'viewer', days: 367 })).rejects.toThrow()
  const { caller: admin } = await signedIn('admin')
  const { secret } = await admin.token.create({ name: 'chain', role: 'admin' })
  await expect((await withSecret(secret)).token.create({ name: 'next', role: 'viewer' })).rejects.toThrow(
    'an API token cannot create API tokens',
  )
  // the command line of the machine can, and what it made belongs to no person
  const made = await (await it.callerOf(await it.token())).token.create({
    name: 'terraform',
    role: 'operator',
  })
  expect(await (await withSecret(made.secret)).account.me()).toMatchObject({ role: 'operator' })
})

test('everybody sees and revokes their own tokens, an admin everybody’s; what is revoked is nobody’s', async () => {
  const { caller: ann } = await signedIn('operator')
  const { caller: bob } = await signedIn('operator')
  const { caller: admin } = await signedIn('admin')
  const mine = await ann.token.create({ name: 'of ann', role: 'operator' })
  // the time of making is kept in milliseconds, and a quick machine makes two in one
  await it.database.pool.query(
    `UPDATE api_token SET "createdAt" = "createdAt" - interval '1 ms' WHERE id = $1`,
    [mine.tokenId],
  )
  const other = await ann.token.create({ name: 'of ann, too', role: 'viewer' })
  expect(await names(ann)).toEqual(['of ann, too', 'of ann'])
  expect(await names(bob)).toEqual([])
  expect(await names(admin)).toEqual(expect.arrayContaining(['of ann', 'of ann, too']))
  await expect(bob.token.revoke({ tokenId: mine.tokenId })).rejects.toThrow('does not exist')
  expect(await ann.token.revoke({ tokenId: mine.tokenId })).toMatchObject({ name: 'of ann' })
  expect(await admin.token.revoke({ tokenId: other.tokenId })).toMatchObject({ name: 'of ann, too' })
  await expect(ann.token.revoke({ tokenId: mine.tokenId })).rejects.toThrow('does not exist')
  await expect((await withSecret(mine.secret)).account.me()).rejects.toThrow('not signed in')
  // the token of the command line is none of these
  const { rows } = await it.database.pool.query('SELECT id FROM api_token WHERE role IS NULL')
  for (const { id } of rows)
    await expect(admin.token.revoke({ tokenId: id })).rejects.toThrow('does not exist')
})
