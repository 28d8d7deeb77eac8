import { listStalls } from '@floe/db'
import { stallCause, waitShares } from '@floe/telemetry'
import { viewerProcedure } from '../../procedures'
import { StallList, StallListInput } from './stall.types'

/** Stretches of time in which an instance had work and committed none of it, newest first. */
export const list = viewerProcedure
  .input(StallListInput)
  .output(StallList)
  .query(async ({ ctx, input }) => {
    const { minutes, ...asked } = input
    const since = minutes === undefined ? {} : { from: Date.now() - minutes * 60_000 }
    const rows = await listStalls(ctx.ports.database.pool, { ...asked, ...since })
    return { stalls: rows.map((row) => ({ ...row, reason: stallCause(row), waited: waitShares(row) })) }
  })
