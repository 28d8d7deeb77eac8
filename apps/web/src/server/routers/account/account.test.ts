import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import {
  passphrase,
  signInRequest,
  type ThrowawayConsole,
  throwawayConsole,
} from '../../testing/throwaway-console'

let it: ThrowawayConsole
beforeEach(async () => {
  it = await throwawayConsole({ engine: inject('engineConnectionString') })
})
afterEach(() => it.close())

const fresh = 'quite another passphrase'
const rows = async () =>
  (
    await it.database.pool.query(
      `SELECT action, outcome, actor, detail FROM audit_event WHERE action LIKE 'account.%' ORDER BY id`,
    )
  ).rows

/** Another browser of the same person. */
async function another(email: string) {
  const response = await it.ports.auth.handler(signInRequest(it.webUrl, email, passphrase))
  const cookie = response.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
  return { cookie, origin: it.webUrl, 'sec-fetch-site': 'same-origin' }
}

test('a changed passphrase ends the other sessions, and is changed by nobody who does not know it', async () => {
  const { email, headers, userId } = await it.signedIn('viewer')
  const elsewhere = await another(email)
  const caller = await it.callerOf(headers)
  await expect(caller.account.changePassphrase({ current: 'wrong', next: fresh })).rejects.toThrow('is wrong')
  expect(await (await it.callerOf(elsewhere)).account.me()).toMatchObject({ email })
  expect(await caller.account.changePassphrase({ current: passphrase, next: fresh })).toEqual({
    endedSessions: 1,
  })
  await expect((await it.callerOf(elsewhere)).account.me()).rejects.toThrow('not signed in')
  expect(await (await it.callerOf(headers)).account.me()).toMatchObject({ email })
  expect((await it.ports.auth.handler(signInRequest(it.webUrl, email, passphrase))).status).toBe(401)
  expect((await it.ports.auth.handler(signInRequest(it.webUrl, email, fresh))).status).toBe(200)
  expect(await rows()).toEqual([
    {
      action: 'account.changePassphrase',
      outcome: 'denied',
      actor: userId,
      detail: { code: 'account.passphrase_wrong' },
    },
    { action: 'account.changePassphrase', outcome: 'allowed', actor: userId, detail: { endedSessions: 1 } },
  ])
})

test('the current passphrase cannot be guessed faster than at the sign-in', async () => {
  const { headers } = await it.signedIn('viewer')
  const caller = await it.callerOf(headers)
  for (let n = 0; n < 5; n++)
    await expect(caller.account.changePassphrase({ current: `${n}`, next: fresh })).rejects.toThrow(
      'is wrong',
    )
  await expect(caller.account.changePassphrase({ current: passphrase, next: fresh })).rejects.toThrow(
    'too many',
  )
})

test('one sees one’s own sessions only, and ends one or all others', async () => {
  const { email, headers, userId } = await it.signedIn('operator')
  const stranger = await it.signedIn('viewer')
  const second = await another(email)
  await another(email)
  const caller = await it.callerOf(headers)
  const { sessions } = await caller.account.sessions()
  expect(sessions).toHaveLength(3)
  expect(sessions.filter((s) => s.own)).toHaveLength(1)
  expect(JSON.stringify(sessions)).not.toContain('token')
  const theirs = (await (await it.callerOf(stranger.headers)).account.sessions()).sessions[0]
    ?.sessionId as string
  await expect(caller.account.endSession({ sessionId: theirs })).rejects.toThrow('does not exist')
  const of = await (await it.callerOf(second)).account.sessions()
  const sessionId = of.sessions.find((s) => s.own)?.sessionId as string
  expect(await caller.account.endSession({ sessionId })).toEqual({ endedSessions: 1 })
  await expect((await it.callerOf(second)).account.me()).rejects.toThrow('not signed in')
  expect(await caller.account.endOtherSessions()).toEqual({ endedSessions: 1 })
  expect((await caller.account.sessions()).sessions).toMatchObject([{ own: true }])
  expect(await (await it.callerOf(stranger.headers)).account.me()).toMatchObject({ role: 'viewer' })
  expect((await rows()).map((row) => [row.action, row.outcome, row.actor])).toEqual([
    ['account.endSession', 'allowed', userId],
    ['account.endOtherSessions', 'allowed', userId],
  ])
})

test('a name is bounded by the schema and by the database, and its change is written down', async () => {
  const { headers, userId } = await it.signedIn('viewer')
  const caller = await it.callerOf(headers)
  for (const name of ['x'.repeat(65), ' ', 'controller', 'a\tb'])
    await expect(caller.account.rename({ name })).rejects.toThrow()
  expect(await caller.account.rename({ name: ' Vera ' })).toEqual({ name: 'Vera' })
  expect(await (await it.callerOf(headers)).account.me()).toMatchObject({ name: 'Vera' })
  expect(await rows()).toMatchObject([
    { action: 'account.rename', outcome: 'allowed', detail: { from: 'The viewer', to: 'Vera' } },
  ])
  for (const name of ['x'.repeat(65), '', 'a\nb', ' a'])
    await expect(
      it.database.pool.query(`UPDATE "user" SET name = $2 WHERE id = $1`, [userId, name]),
    ).rejects.toThrow('user_name_check')
})

test('an API token has no account', async () => {
  const caller = await it.callerOf(await it.token())
  await expect(caller.account.sessions()).rejects.toThrow('an API token has no account')
  await expect(caller.account.rename({ name: 'Eve' })).rejects.toThrow('an API token has no account')
})
