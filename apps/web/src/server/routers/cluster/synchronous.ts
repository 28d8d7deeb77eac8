import { operatorProcedure, viewerProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import {
  ClusterCommitModeInput,
  ClusterCommitModes,
  ClusterCommitModesInput,
  ClusterSynchronousInput,
} from './cluster.types'
import { requireCluster } from './find'

/** Orders which standbys a commit waits for, and synchronous_commit, on every member. */
export const synchronous = operatorProcedure
  .input(ClusterSynchronousInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input: { idempotencyKey, ...input } }) => {
    const { primaryInstanceId } = await requireCluster(ctx.ports.database.pool, input)
    return submit(ctx, {
      kind: 'change-synchronous',
      input: { ...input, instanceId: primaryInstanceId },
      asked: input,
      idempotencyKey,
    })
  })

/**
 * Overrides of synchronous_commit per database and role, including those set without Floe; a probe of the primary,
 * within 3 s.
 */
export const commitModes = viewerProcedure
  .input(ClusterCommitModesInput)
  .output(ClusterCommitModes)
  .query(async ({ ctx, input }) => {
    const { primaryInstanceId: instanceId } = await requireCluster(ctx.ports.database.pool, input)
    return ctx.ports.agents.probe(instanceId, (trpc) => trpc.commitMode.list.query({ instanceId }))
  })

/** Orders synchronous_commit of a database, a role, or a role in a database; it holds for new sessions. */
export const commitMode = operatorProcedure
  .input(ClusterCommitModeInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input: { idempotencyKey, clusterId, ...input } }) => {
    const { primaryInstanceId } = await requireCluster(ctx.ports.database.pool, { clusterId })
    return submit(ctx, {
      kind: 'change-commit-mode',
      input: { ...input, instanceId: primaryInstanceId },
      asked: { ...input, clusterId },
      idempotencyKey,
    })
  })
