import { findOperationByKey } from '@floe/db'
import { OperationId } from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { requireCluster } from '../cluster/find'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { wayBack } from './changes'
import { ClusterSettingRollBackInput } from './cluster-setting.types'

/**
 * Takes all members of a cluster back to an earlier state of their settings, in the right order: the changes that lead
 * there are ordered like any others. Throws `setting.state_not_found` or `setting.state_holds`.
 */
export const rollBack = operatorProcedure
  .input(ClusterSettingRollBackInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input: { clusterId, stateId, reason, idempotencyKey } }) => {
    const { pool } = ctx.ports.database
    // asked again after it was done, there is nothing left to change: the same key still answers the same operation
    const earlier = idempotencyKey === undefined ? undefined : await findOperationByKey(pool, idempotencyKey)
    if (earlier?.kind === 'change-cluster-settings' && earlier.actor === ctx.actor.id)
      return { operationId: OperationId.parse(earlier.operationId) }
    const cluster = await requireCluster(pool, { clusterId })
    const { at, members } = await wayBack(pool, cluster, stateId)
    const why = reason || `rolled back to the state of ${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`
    return submit(ctx, {
      kind: 'change-cluster-settings',
      input: { clusterId, instanceId: cluster.primaryInstanceId, members, restart: true, reason: why },
      idempotencyKey,
    })
  })
