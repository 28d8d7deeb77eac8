import { operatorProcedure } from '../../procedures'
import { requireCluster } from '../cluster/find'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { rolledBackTo } from '../setting/states'
import { wayBack } from './changes'
import { ClusterSettingRollBackInput } from './cluster-setting.types'

/**
 * Takes all members of a cluster back to an earlier state of their settings, in the right order: the changes that lead
 * there are ordered like any others. Throws `setting.state_not_found` or `setting.state_holds`.
 */
export const rollBack = operatorProcedure
  .input(ClusterSettingRollBackInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { clusterId, stateId, reason, idempotencyKey } }) => {
    const { pool } = ctx.ports.database
    return submit(ctx, {
      kind: 'change-cluster-settings',
      // asked again after it was done, there is nothing left to change
      input: async () => {
        const cluster = await requireCluster(pool, { clusterId })
        const { at, members } = await wayBack(pool, cluster, stateId)
        return {
          clusterId,
          instanceId: cluster.primaryInstanceId,
          members,
          restart: true,
          reason: reason || rolledBackTo(at),
          stateId,
        }
      },
      asked: { clusterId, stateId, ...(reason ? { reason } : {}) },
      idempotencyKey,
    })
  })
