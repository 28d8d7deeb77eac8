import { findOperationByKey } from '@floe/db'
import {
  type CandidatePurpose,
  type ClusterObserved,
  FaultError,
  fault,
  judgeCandidates,
  OperationId,
} from '@floe/domain'
import type { Context } from '../../context'
import { operatorProcedure } from '../../procedures'
import type { Account } from '../account/me.types'
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

/** What the same key began: asked again meanwhile, the candidate may be the primary already, and no candidate any more. */
async function begunBefore(
  ctx: Context & { actor: Account },
  kind: 'switchover-cluster' | 'failover-cluster',
  idempotencyKey: string | undefined,
): Promise<OperationRef | undefined> {
  const { pool } = ctx.ports.database
  const earlier = idempotencyKey === undefined ? undefined : await findOperationByKey(pool, idempotencyKey)
  return earlier?.kind === kind && earlier.actor === ctx.actor.id
    ? { operationId: OperationId.parse(earlier.operationId) }
    : undefined
}

/** Orders a standby to take over from the running primary. Refused with the candidate's blocker; loses nothing. */
export const switchover = operatorProcedure
  .input(ClusterSwitchoverInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input: { idempotencyKey, clusterId, instanceId } }) => {
    const before = await begunBefore(ctx, 'switchover-cluster', idempotencyKey)
    if (before) return before
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
    const before = await begunBefore(ctx, 'failover-cluster', idempotencyKey)
    if (before) return before
    const cluster = await requireCluster(ctx.ports.database.pool, input)
    const chosen = choose(cluster, 'failover', instanceId, input.acceptLoss !== null)
    return submit(ctx, { kind: 'failover-cluster', input: { ...input, instanceId: chosen }, idempotencyKey })
  })
