import { InstanceId } from '@floe/domain'
import { type MetricName, metrics, Sample } from '@floe/telemetry'
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
    /** Metrics of which the largest value within each point is reported, too. */
    maximumOf: z.array(z.enum(names)).max(names.length).default([]),
    maxPoints: z.number().int().min(10).max(5_000).default(600),
  })
  .refine((i) => i.minutes !== undefined || (i.from !== undefined && i.to !== undefined && i.from < i.to), {
    message: 'give minutes, or from and to with from before to',
  })

const Values = z.array(z.number().nullable())
export const TelemetryHistory = z.object({
  from: z.number(),
  to: z.number(),
  /** Seconds one point stands for. */
  stepSeconds: z.number(),
  /** What the values of a point are, in their order. */
  metrics: z.array(z.enum(names)),
  maximumOf: z.array(z.enum(names)),
  /** In order of time. */
  points: z.array(
    z.object({
      /** End of the interval the point covers, ms since the epoch. */
      at: z.number(),
      /** Number of the sample a point is; null where it stands for several. */
      seq: z.number().int().nullable(),
      /** Measured time that it covers. */
      intervalMs: z.number(),
      /** True where nobody measured between the point before and this one: the line breaks here. */
      gapBefore: z.boolean(),
      /** In the order of `metrics`; null is not known. */
      average: Values,
      /** In the order of `maximumOf`; null where a point is one sample. */
      maximum: Values.nullable(),
    }),
  ),
  /** Number of the newest sample stored when this was read: live begins after it (`afterSeq` of telemetry.stream). */
  newestSeq: z.number().int().nullable(),
  now: z.number(),
})
export type TelemetryHistory = z.infer<typeof TelemetryHistory>

/** At most this many instances in one subscription: its event id holds a number for each of them. */
export const STREAM_INSTANCES_MAX = 100

export const TelemetryStreamInput = z.object({
  instances: z
    .array(
      z.object({
        instanceId: InstanceId,
        /** Begin after this sample (`newestSeq` of the history); null: with the newest one. */
        afterSeq: z.number().int().min(-1).nullable().default(null),
      }),
    )
    .max(STREAM_INSTANCES_MAX),
  /** Only these metrics; all when left out. */
  metrics: MetricNames.optional(),
  /** Also say when an instance, operation, host or incident changed, so that a page needs no second stream. */
  changes: z.boolean().default(false),
  /** Set by tRPC when it reconnects: the newest number of each instance that arrived, in the order of `instances`. */
  lastEventId: z.string().max(4_000).nullish(),
})

export const LiveSample = Sample.extend({ instanceId: InstanceId })
export type LiveSample = z.infer<typeof LiveSample>

export const TelemetryEvent = z.discriminatedUnion('type', [
  /** In ascending order of seq per instance, without gap or duplicate. `sentAt` is the console's clock. */
  z.object({ type: z.literal('samples'), samples: z.array(LiveSample), sentAt: z.number() }),
  /**
   * More was missed than is worth sending one by one (or numbering began again): read telemetry.history again and
   * subscribe after its newestSeq. What follows here begins after this `newestSeq`.
   */
  z.object({ type: z.literal('reset'), instanceId: InstanceId, newestSeq: z.number().int() }),
  /**
   * A fact about this instance or operation moved; ask for it again; id `*` stands for
   * any of them. Only sent when `changes` was asked for.
   */
  z.object({
    type: z.literal('changed'),
    noun: z.enum(['instance', 'operation', 'incident', 'host']),
    id: z.string(),
  }),
])
export type TelemetryEvent = z.infer<typeof TelemetryEvent>

export const TelemetryLatestInput = z.object({ instanceIds: z.array(InstanceId).min(1).max(100) })
/** The newest stored sample of each instance that has one. */
export const TelemetryLatest = z.object({ samples: z.array(LiveSample), now: z.number() })
