import { newestSamples } from '@floe/db'
import type { InstanceId } from '@floe/domain'
import { decodeValues } from '@floe/telemetry'
import { viewerProcedure } from '../../procedures'
import { TelemetryLatest, TelemetryLatestInput } from './telemetry.types'

/** The newest stored sample of each instance that has one of the last hour. */
export const latest = viewerProcedure
  .input(TelemetryLatestInput)
  .output(TelemetryLatest)
  .query(async ({ ctx, input }) => {
    const rows = await newestSamples(ctx.ports.database.pool, input.instanceIds)
    const samples = rows.map(({ instanceId, values, ...row }) => ({
      ...row,
      instanceId: instanceId as InstanceId,
      values: decodeValues(values),
    }))
    return { samples, now: Date.now() }
  })
