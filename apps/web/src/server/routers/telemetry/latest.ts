import { newestSeq, readSamplesAfter } from '@floe/db'
import { decodeValues } from '@floe/telemetry'
import { viewerProcedure } from '../../procedures'
import { TelemetryLatest, TelemetryLatestInput } from './latest.types'

/** The newest stored sample of each instance. */
export const latest = viewerProcedure
  .input(TelemetryLatestInput)
  .output(TelemetryLatest)
  .query(async ({ ctx, input }) => {
    const { pool } = ctx.ports.database
    const samples = await Promise.all(
      input.instanceIds.map(async (instanceId) => {
        const newest = await newestSeq(pool, instanceId)
        if (newest === null) return []
        const rows = await readSamplesAfter(pool, { instanceId, afterSeq: newest - 1, limit: 1 })
        return rows.map(({ values, ...row }) => ({ ...row, instanceId, values: decodeValues(values) }))
      }),
    )
    return { samples: samples.flat(), now: Date.now() }
  })
