import { insertAuditEvent, inTransaction, removeHost } from '@floe/db'
import { adminProcedure } from '../../procedures'
import { requireOther, requireTyped } from './confirm'
import { HostRemove, HostRemoveInput } from './host.types'

/**
 * Forgets a revoked host and its instances; nothing is deleted on the machine. Throws `host.not_found`,
 * `host.not_revoked`, `host.conflict`, `host.own` or `host.name_mismatch`.
 */
export const remove = adminProcedure
  .input(HostRemoveInput)
  .output(HostRemove)
  .mutation(async ({ ctx, input: { hostId, confirmName } }) => {
    requireOther(ctx, hostId)
    const removed = await inTransaction(ctx.ports.database.pool, async (tx) => {
      const removed = await removeHost(tx, hostId)
      requireTyped(confirmName, removed.name)
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        action: 'host.remove',
        outcome: 'allowed',
        objectKind: 'host',
        objectId: hostId,
        detail: removed,
        ipAddress: ctx.ipAddress,
      })
      return removed
    })
    return { hostId, ...removed }
  })
