import { listCheckpoints } from '@floe/db'
import { checkpointReason } from '@floe/telemetry'
import { viewerProcedure } from '../../procedures'
import { CheckpointList, CheckpointListInput } from './checkpoint.types'

/** Checkpoints of an instance as its server log has them, newest first. */
export const list = viewerProcedure
  .input(CheckpointListInput)
  .output(CheckpointList)
  .query(async ({ ctx, input }) => {
    const { minutes, ...asked } = input
    const since = minutes === undefined ? {} : { from: Date.now() - minutes * 60_000 }
    const rows = await listCheckpoints(ctx.ports.database.pool, { ...asked, ...since })
    return { checkpoints: rows.map((row) => ({ ...row, reason: checkpointReason(row.reasons) })) }
  })
