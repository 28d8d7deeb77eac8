import { insertAuditEvent, inTransaction, revokeHost } from '@floe/db'
import { adminProcedure } from '../../procedures'
import { requireOther, requireTyped } from './confirm'
import { HostRevoke, HostRevokeInput } from './host.types'

/**
 * Revokes a host: its certificates are not accepted any more, nothing it says is believed, operations on it fail. Its
 * instances run on, unseen. Throws `host.not_found`, `host.revoked`, `host.own` or `host.name_mismatch`.
 */
export const revoke = adminProcedure
  .input(HostRevokeInput)
  .output(HostRevoke)
  .mutation(async ({ ctx, input: { hostId, confirmName } }) => {
    requireOther(ctx, hostId)
    const name = await inTransaction(ctx.ports.database.pool, async (tx) => {
      const name = await revokeHost(tx, hostId, ctx.actor.name)
      requireTyped(confirmName, name)
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        action: 'host.revoke',
        outcome: 'allowed',
        objectKind: 'host',
        objectId: hostId,
        detail: { name },
        ipAddress: ctx.ipAddress,
      })
      return name
    })
    await ctx.ports.agents.hostChanged(hostId)
    return { hostId, name }
  })
