import { InstanceId } from '@floe/domain'
import { Sample } from '@floe/telemetry'
import { z } from 'zod'
import { MetricNames } from './history.types'

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
   * More was missed than is worth sending one by one (or numbering began anew): read telemetry.history again and
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
