import {
  endSessions,
  findPassphraseHash,
  insertAuditEvent,
  inTransaction,
  replacePassphraseHash,
} from '@floe/db'
import { fault } from '@floe/domain'
import { hashPassword, verifyPassword } from 'better-auth/crypto'
import { SignInLimit } from '../../auth/sign-in-limit'
import { viewerProcedure } from '../../procedures'
import { PassphraseChanged, PassphraseChangeInput } from './account.types'
import { accountEvent, ownAccount } from './own-account'

// a person at an unattended console must not be able to guess the passphrase faster than at the sign-in
const limit = new SignInLimit()

/** Changes the caller's passphrase and ends all their other sessions. Throws `account.passphrase_wrong`. */
export const changePassphrase = viewerProcedure
  .input(PassphraseChangeInput)
  .output(PassphraseChanged)
  .mutation(async ({ ctx, input: { current, next } }) => {
    const { userId, sessionId } = await ownAccount(ctx)
    const { pool } = ctx.ports.database
    const event = { ...accountEvent(ctx), action: 'account.changePassphrase' }
    const attempt = { email: userId, peer: null, device: 'own session' }
    const waitMs = limit.waitMs(attempt)
    if (waitMs > 0)
      throw fault('account.too_many_attempts', 'too many failed attempts', {
        hint: `Try again in ${Math.ceil(waitMs / 1_000)} s.`,
      })
    const takeBack = limit.begin(attempt)
    const before = await findPassphraseHash(pool, userId)
    const wrong = () =>
      fault('account.passphrase_wrong', 'the current passphrase is wrong', { hint: 'Nothing was changed.' })
    if (before === null || !(await verifyPassword({ hash: before, password: current }))) {
      await insertAuditEvent(pool, {
        ...event,
        outcome: 'denied',
        detail: { code: 'account.passphrase_wrong' },
      })
      throw wrong()
    }
    takeBack()
    if (next === current)
      throw fault('account.passphrase_same', 'the new passphrase is the current one', {
        hint: 'Choose another one.',
      })
    const after = await hashPassword(next)
    const endedSessions = await inTransaction(pool, async (tx) => {
      if (!(await replacePassphraseHash(tx, userId, { before, after }))) throw wrong()
      const ended = await endSessions(tx, userId, { allBut: sessionId })
      await insertAuditEvent(tx, { ...event, outcome: 'allowed', detail: { endedSessions: ended } })
      return ended
    })
    return { endedSessions }
  })
