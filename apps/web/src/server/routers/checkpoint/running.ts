import { newestCheckpointSeq } from '@floe/db'
import { checkpointReason, stallCause } from '@floe/telemetry'
import { viewerProcedure } from '../../procedures'
import { CheckpointRunning, CheckpointRunningInput } from './checkpoint.types'

/** The checkpoint and the stall of this moment, and the checkpoints that ended but are not stored yet; a probe. */
export const running = viewerProcedure
  .input(CheckpointRunningInput)
  .output(CheckpointRunning)
  .query(async ({ ctx, input: { instanceId } }) => {
    const afterSeq = await newestCheckpointSeq(ctx.ports.database.pool, instanceId)
    const answer = await ctx.ports.agents.probe(instanceId, (trpc) =>
      trpc.checkpoint.read.query({ instanceId, afterSeq, limit: 50 }),
    )
    return {
      running: answer.running && { ...answer.running, reason: checkpointReason(answer.running.reasons) },
      recent: answer.checkpoints
        .map((c) => ({ ...c, reason: checkpointReason(c.reasons) }))
        .sort((a, b) => b.seq - a.seq),
      stall: answer.runningStall && { ...answer.runningStall, reason: stallCause(answer.runningStall) },
    }
  })
