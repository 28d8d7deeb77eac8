import { operatorProcedure } from '../../procedures'
import { requireCluster } from '../cluster/find'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { forAll } from './changes'
import { ClusterSettingSetInput } from './cluster-setting.types'

/**
 * Orders changes of settings on all members of a cluster: checked by every member's own binary, applied in the order that
 * keeps standbys replaying, read back from each. What fails puts all members back. Throws `operation.conflict`, or why a
 * member cannot take part (`member.host_silent`, `member.not_running`, `member.fenced`, `member.not_streaming`, …).
 */
export const set = operatorProcedure
  .input(ClusterSettingSetInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input: { clusterId, changes, restart, reason, idempotencyKey } }) => {
    const cluster = await requireCluster(ctx.ports.database.pool, { clusterId })
    const asked = { clusterId, members: forAll(cluster, changes), restart, reason }
    return submit(ctx, {
      kind: 'change-cluster-settings',
      input: { ...asked, instanceId: cluster.primaryInstanceId },
      asked,
      idempotencyKey,
    })
  })
