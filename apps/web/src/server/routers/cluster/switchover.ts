import { type CandidatePurpose, type ClusterObserved, FaultError, fault, judgeCandidates } from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { ClusterFailoverInput, ClusterSwitchoverInput } from './cluster.types'
import { requireCluster } from './find'

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
  .mutation(({ ctx, input: { idempotencyKey, clusterId, instanceId } }) =>
    submit(ctx, {
      kind: 'switchover-cluster',
      // asked again meanwhile, the candidate may be the primary already, and no candidate any more
      input: async () => {
        const cluster = await requireCluster(ctx.ports.database.pool, { clusterId })
        return { clusterId, instanceId: choose(cluster, 'switchover', instanceId, false) }
      },
      asked: { clusterId, ...(instanceId ? { instanceId } : {}) },
      idempotencyKey,
    }),
  )

/** Orders a standby to take over from a primary that is gone or has to go; the former one is fenced. */
export const failover = operatorProcedure
  .input(ClusterFailoverInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, instanceId, ...input } }) =>
    submit(ctx, {
      kind: 'failover-cluster',
      input: async () => {
        const cluster = await requireCluster(ctx.ports.database.pool, input)
        return {
          ...input,
          instanceId: choose(cluster, 'failover', instanceId, input.acceptLoss !== null),
          // by positions that are final: those that were seen last may be old
          choose: instanceId === undefined,
        }
      },
      asked: { ...input, ...(instanceId ? { instanceId } : {}) },
      idempotencyKey,
    }),
  )
