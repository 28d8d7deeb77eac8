import { operatorProcedure } from '../../procedures'
import { requireCluster } from '../cluster/find'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { forAll } from './scope'
import { SettingSetInput } from './setting.types'

/**
 * Orders changes of settings: checked by the binary of every member, written, reloaded, read back. Across a cluster they
 * are applied in the order that keeps standbys replaying, and what fails puts all members back. Throws
 * `operation.conflict`, `setting.of_cluster`, or why a member cannot take part (`member.host_silent`, `member.fenced`, …).
 */
export const set = operatorProcedure
  .input(SettingSetInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input: { scope, changes, restart, reason, idempotencyKey } }) => {
    if ('instanceId' in scope) {
      const { instanceId } = scope
      return submit(ctx, { kind: 'change-settings', input: { instanceId, changes, reason }, idempotencyKey })
    }
    const cluster = await requireCluster(ctx.ports.database.pool, scope)
    const asked = { ...scope, members: forAll(cluster, changes), restart, reason }
    return submit(ctx, {
      kind: 'change-cluster-settings',
      input: { ...asked, instanceId: cluster.primaryInstanceId },
      asked,
      idempotencyKey,
    })
  })
