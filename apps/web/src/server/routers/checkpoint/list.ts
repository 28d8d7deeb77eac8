import { listCheckpoints } from '@floe/db'
import { checkpointReason } from '@floe/telemetry'
import { viewerProcedure } from '../../procedures'
import { CheckpointList, CheckpointListInput } from './list.types'

/** Checkpoints of an instance as its server log told them, newest first. */
export const list = viewerProcedure
  .input(CheckpointListInput)
  .output(CheckpointList)
  .query(async ({ ctx, input }) => {
    const rows = await listCheckpoints(ctx.ports.database.pool, input)
    return { checkpoints: rows.map((row) => ({ ...row, reason: checkpointReason(row.reasons) })) }
  })
