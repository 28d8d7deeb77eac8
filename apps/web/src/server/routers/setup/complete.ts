import { createOwner, insertAuditEvent, inTransaction, requireSetupLink } from '@floe/db'
import { hashPassword } from 'better-auth/crypto'
import { publicProcedure } from '../../procedures'
import { SetupComplete, SetupCompleteInput } from './setup.types'

/** Makes the owner by the one-time link: link, owner and audit row in one transaction. Throws setup.link_* or setup.owner_exists. */
export const complete = publicProcedure
  .input(SetupCompleteInput)
  .output(SetupComplete)
  .mutation(async ({ ctx, input }) => {
    // hashing is meant to be slow and takes much memory: only who holds a link that works may cause it
    await requireSetupLink(ctx.ports.database.pool, input.token)
    const passwordHash = await hashPassword(input.passphrase)
    await inTransaction(ctx.ports.database.pool, async (tx) => {
      const { userId } = await createOwner(tx, { ...input, passwordHash })
      await insertAuditEvent(tx, {
        actor: { id: userId, name: input.name },
        action: 'setup.complete',
        outcome: 'allowed',
        objectKind: 'user',
        objectId: userId,
        ipAddress: ctx.ipAddress,
      })
    })
    return { email: input.email.toLowerCase() }
  })
