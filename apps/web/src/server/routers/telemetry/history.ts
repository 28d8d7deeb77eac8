import { newestSeq, readSamples } from '@floe/db'
import { viewerProcedure } from '../../procedures'
import { TelemetryHistory, TelemetryHistoryInput } from './telemetry.types'

/** Stored telemetry of a range, in at most maxPoints points; ends at `newestSeq`, where telemetry.stream goes on. */
export const history = viewerProcedure
  .input(TelemetryHistoryInput)
  .output(TelemetryHistory)
  .query(async ({ ctx, input }) => {
    const { pool } = ctx.ports.database
    const now = Date.now()
    const { from, to } =
      input.minutes === undefined
        ? { from: input.from as number, to: input.to as number }
        : { from: now - input.minutes * 60_000, to: now }
    const { instanceId, metrics, maximumOf, maxPoints } = input
    const { points, ...read } = await readSamples(pool, {
      instanceId,
      from,
      to,
      metrics,
      maximumOf,
      maxPoints,
    })
    return {
      from,
      to,
      stepSeconds: read.stepSeconds,
      metrics,
      maximumOf,
      points,
      // nothing stored in the range (the controller was away): the agent's ring still has what came after the last one
      newestSeq: read.newestSeq ?? (await newestSeq(pool, instanceId)),
      now,
    }
  })
