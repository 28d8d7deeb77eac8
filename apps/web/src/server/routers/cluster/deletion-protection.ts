import { insertAuditEvent, inTransaction, setDeletionProtected } from '@floe/db'
import { operatorProcedure } from '../../procedures'
import { ClusterDeletionProtection, ClusterDeletionProtectionInput } from './cluster.types'
import { requireCluster } from './find'

/**
 * Protects a cluster, one instance or more, from deletion: while it is on no operation deletes its primary, and its host is
 * not removed. Standbys can be. Throws `cluster.not_found`, or `cluster.being_deleted`.
 */
export const deletionProtection = operatorProcedure
  .input(ClusterDeletionProtectionInput)
  .output(ClusterDeletionProtection)
  .mutation(({ ctx, input }) =>
    inTransaction(ctx.ports.database.pool, async (tx) => {
      const { clusterId, name, primaryInstanceId } = await requireCluster(tx, input)
      const { on } = input
      const { before } = await setDeletionProtected(tx, { clusterId, name }, on)
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        action: 'cluster.deletionProtection',
        outcome: 'allowed',
        objectKind: 'instance',
        objectId: primaryInstanceId,
        detail: { name, before, on },
        ipAddress: ctx.ipAddress,
      })
      return { clusterId, name, on }
    }),
  )
