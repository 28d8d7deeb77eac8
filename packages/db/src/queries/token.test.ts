import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { inTransaction } from '../database'
import { createTestDatabase, type TestDatabase } from '../testing/control-database'
import {
  checkSetupLink,
  consumeSetupLink,
  findApiToken,
  hashToken,
  listLimitedTokens,
  makeLimitedToken,
  revokeLimitedToken,
} from './token'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase(inject('engineConnectionString'))
})
afterAll(() => db.drop())

const link = (token: string, expires: string) =>
  db.pool.query(
    `INSERT INTO setup_link (id, "tokenHash", "expiresAt") VALUES ($1, $2, now() + $3::interval)`,
    [randomUUID(), hashToken(token), expires],
  )

test('a set-up link can be used once, however many use it at the same moment', async () => {
  await link('one', '1 hour')
  expect(await checkSetupLink(db.pool, 'one')).toBe('valid')
  const answers = await Promise.all(Array.from({ length: 10 }, () => consumeSetupLink(db.pool, 'one')))
  expect(answers.filter((a) => a === 'valid')).toHaveLength(1)
  expect(answers.filter((a) => a === 'used')).toHaveLength(9)
  expect(await checkSetupLink(db.pool, 'one')).toBe('used')
})

test('an expired link and an unknown one are told apart', async () => {
  await link('late', '-1 second')
  expect(await consumeSetupLink(db.pool, 'late')).toBe('expired')
  expect(await consumeSetupLink(db.pool, 'never')).toBe('unknown')
})

test('an API token is found by its secret until it is revoked; only its hash is stored', async () => {
  await db.pool.query(`INSERT INTO api_token (id, name, "tokenHash") VALUES ($1, 'cli', $2)`, [
    randomUUID(),
    hashToken('secret'),
  ])
  expect(await findApiToken(db.pool, 'secret')).toMatchObject({ name: 'cli', userId: null })
  expect(await findApiToken(db.pool, 'Secret')).toBeUndefined()
  const { rows } = await db.pool.query(`SELECT "lastUsedAt" IS NOT NULL AS used, "tokenHash" FROM api_token`)
  expect(rows).toEqual([{ used: true, tokenHash: hashToken('secret') }])
  await db.pool.query(`UPDATE api_token SET "revokedAt" = now()`)
  expect(await findApiToken(db.pool, 'secret')).toBeUndefined()
})

test('a limited token has a role and an end, is revoked for good, and web can make no other', async () => {
  const web = db.as.web.pool
  const make = (name: string, seconds: number, role = 'operator') =>
    makeLimitedToken(web, {
      ...{ tokenId: randomUUID(), name, secret: name, userId: null, role, seconds, madeByName: 'Ann' },
    })
  await make('ci', 3_600)
  expect(await findApiToken(web, 'ci')).toMatchObject({
    limited: { role: 'operator', madeByName: 'Ann' },
  })
  for (const [seconds, role] of [
    [0, 'viewer'],
    [-1, 'viewer'],
    [367 * 86_400, 'viewer'],
    [60, 'owner'],
    [60, null],
  ] as const)
    await expect(make(`bad ${seconds}`, seconds, role as string)).rejects.toMatchObject({ code: '23514' })
  const [ci] = await listLimitedTokens(web, null)
  expect(ci).toMatchObject({ name: 'ci', role: 'operator', expired: false })
  const { tokenId } = ci as { tokenId: string }
  const revoke = (userId: string | null) =>
    inTransaction(web, (tx) => revokeLimitedToken(tx, tokenId, userId))
  expect(await revoke('somebody else')).toBeUndefined()
  expect(await revoke(null)).toBe('ci')
  expect(await revoke(null)).toBeUndefined()
  expect(await findApiToken(web, 'ci')).toBeUndefined()
  expect(await listLimitedTokens(web, null)).toEqual([])
  await expect(web.query(`UPDATE api_token SET "revokedAt" = NULL`)).rejects.toThrow('permission denied')
  // one that is over is nobody's any more, and is still named for a while
  await make('short', 60)
  await db.pool.query(
    `UPDATE api_token SET "expiresAt" = now() - interval '1 second' WHERE "tokenHash" = $1`,
    [hashToken('short')],
  )
  expect(await findApiToken(web, 'short')).toBeUndefined()
  expect(await listLimitedTokens(web, null)).toMatchObject([{ name: 'short', expired: true }])
})
