import { operatorProcedure } from '../../procedures'
import { requireCluster } from '../cluster/find'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { rolledBackTo } from '../setting/revisions'
import { wayBack } from './changes'
import { ClusterSettingRollBackInput } from './cluster-setting.types'

/**
 * Takes all members of a cluster back to an earlier revision of their settings, in the right order: the changes that lead
 * there are ordered like any others. Throws `setting.revision_not_found` or `setting.revision_current`.
 */
export const rollBack = operatorProcedure
  .input(ClusterSettingRollBackInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { clusterId, revisionId, reason, idempotencyKey } }) => {
    const { pool } = ctx.ports.database
    return submit(ctx, {
      kind: 'change-cluster-settings',
      // asked again after it was done, there is nothing left to change
      input: async () => {
        const cluster = await requireCluster(pool, { clusterId })
        const { at, members } = await wayBack(pool, cluster, revisionId)
        return {
          clusterId,
          instanceId: cluster.primaryInstanceId,
          members,
          restart: true,
          reason: reason || rolledBackTo(at),
          revisionId,
        }
      },
      asked: { clusterId, revisionId, ...(reason ? { reason } : {}) },
      idempotencyKey,
    })
  })
