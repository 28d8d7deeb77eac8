import { insertAuditEvent, inTransaction, renameUser } from '@floe/db'
import { viewerProcedure } from '../../procedures'
import { AccountRenamed, AccountRenameInput } from './account.types'
import { accountEvent, ownAccount } from './own-account'

/** Changes the caller's name. */
export const rename = viewerProcedure
  .input(AccountRenameInput)
  .output(AccountRenamed)
  .mutation(async ({ ctx, input: { name } }) => {
    const { userId } = await ownAccount(ctx)
    await inTransaction(ctx.ports.database.pool, async (tx) => {
      await renameUser(tx, userId, name)
      await insertAuditEvent(tx, {
        ...accountEvent(ctx),
        action: 'account.rename',
        outcome: 'allowed',
        detail: { from: ctx.actor.name, to: name },
      })
    })
    return { name }
  })
