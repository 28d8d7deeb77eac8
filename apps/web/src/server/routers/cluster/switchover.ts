import { type CandidatePurpose, type ClusterObserved, FaultError, fault, judgeCandidates } from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { requireCluster } from './find'
import { ClusterFailoverInput, ClusterSwitchoverInput } from './switchover.types'

/** The candidate that is named, or the best one; throws its first blocker unless a loss is accepted. */
function choose(
  cluster: ClusterObserved,
  purpose: CandidatePurpose,
  wanted: string | undefined,
  lax: boolean,
) {
  const candidates = judgeCandidates(cluster, purpose)
  const chosen = wanted ? candidates.find((c) => c.instanceId === wanted) : candidates[0]
  if (!chosen)
    throw fault('cluster.no_candidate', `cluster "${cluster.name}" has no such standby`, {
      hint: 'Create a standby first.',
    })
  const [blocker] = chosen.blockers
  if (blocker && !lax) throw new FaultError(blocker)
  return chosen.instanceId
}

/** Orders a standby to take over from the running primary. Refused with the candidate's blocker; loses nothing. */
export const switchover = operatorProcedure
  .input(ClusterSwitchoverInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input: { idempotencyKey, clusterId, instanceId } }) => {
    const cluster = await requireCluster(ctx.ports.database.pool, { clusterId })
    const chosen = choose(cluster, 'switchover', instanceId, false)
    return submit(ctx, {
      kind: 'switchover-cluster',
      input: { clusterId, instanceId: chosen },
      idempotencyKey,
    })
  })

/** Orders a standby to take over from a primary that is gone or has to go; the former one is fenced. */
export const failover = operatorProcedure
  .input(ClusterFailoverInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input: { idempotencyKey, instanceId, ...input } }) => {
    const cluster = await requireCluster(ctx.ports.database.pool, input)
    const chosen = choose(cluster, 'failover', instanceId, input.acceptLoss !== null)
    return submit(ctx, { kind: 'failover-cluster', input: { ...input, instanceId: chosen }, idempotencyKey })
  })
