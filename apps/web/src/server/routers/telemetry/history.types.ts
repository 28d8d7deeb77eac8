import { InstanceId } from '@floe/domain'
import { type MetricName, metrics } from '@floe/telemetry'
import { z } from 'zod'

const names = metrics.map((m) => m.name) as [MetricName, ...MetricName[]]
export const MetricNames = z.array(z.enum(names)).min(1).max(names.length)

/** The longest range that is shown, in minutes: as long as the coarsest samples are kept. */
export const longestRangeMinutes = 90 * 24 * 60

export const TelemetryHistoryInput = z
  .object({
    instanceId: InstanceId,
    /** A fixed range, ms since the epoch; or the last `minutes` up to now. */
    from: z.number().optional(),
    to: z.number().optional(),
    minutes: z.number().positive().max(longestRangeMinutes).optional(),
    metrics: MetricNames,
    maxPoints: z.number().int().min(10).max(5_000).default(600),
  })
  .refine((i) => i.minutes !== undefined || (i.from !== undefined && i.to !== undefined && i.from < i.to), {
    message: 'give minutes, or from and to with from before to',
  })

const Column = z.array(z.number().nullable())
/** Points by column: entry i of every array belongs to the same moment. */
export const TelemetryHistory = z.object({
  from: z.number(),
  to: z.number(),
  /** Seconds one point stands for. */
  stepSeconds: z.number(),
  /** End of the interval each point covers, ms since the epoch, ascending. */
  at: z.array(z.number()),
  /** Number of the sample a point is; null where it stands for several. */
  seq: z.array(z.number().int().nullable()),
  /** Measured time that each point covers. */
  intervalMs: z.array(z.number()),
  /** True where nobody measured between the point before and this one: the line breaks here. */
  gapBefore: z.array(z.boolean()),
  average: z.record(z.string(), Column),
  /** Number of the newest sample stored when this was read: live begins after it (`afterSeq` of telemetry.stream). */
  newestSeq: z.number().int().nullable(),
  now: z.number(),
})
export type TelemetryHistory = z.infer<typeof TelemetryHistory>
