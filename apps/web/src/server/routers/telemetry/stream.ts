import { readSamplesAfter } from '@floe/db'
import { FaultError } from '@floe/domain'
import { decodeValues, type MetricName, type MetricValues, type Sample } from '@floe/telemetry'
import { tracked } from '@trpc/server'
import { follow } from '../../live/follow'
import type { Ports } from '../../ports'
import { viewerProcedure } from '../../procedures'
import { keepAsking } from '../../still-allowed'
import { formatEventId, parseEventId } from './event-id'
import { changedEvents, mergeStreams } from './merge-streams'
import { type TelemetryEvent, TelemetryStreamInput } from './telemetry.types'

/**
 * Live samples of up to 100 instances in one stream, from given numbers on. The event id says how far each instance was
 * sent, so that a broken connection, a sleeping laptop or a restarted console resumes without a gap.
 */
export const stream = viewerProcedure.input(TelemetryStreamInput).subscription(async function* ({
  ctx,
  input,
  signal,
}) {
  // an instance that does not exist is said at once; a database that is away is no reason not to stream
  for (const { instanceId } of input.instances)
    await ctx.ports.agents.of(instanceId).catch((error: unknown) => {
      if (error instanceof FaultError && error.fault.code === 'instance.not_found') throw error
    })
  const resumed = input.lastEventId ? parseEventId(input.lastEventId, input.instances.length) : null
  const from = input.instances.map((i, n) => ({
    instanceId: i.instanceId,
    afterSeq: resumed?.[n] ?? i.afterSeq,
  }))
  let positions = from.map((i) => i.afterSeq)
  const stillAllowed = keepAsking(ctx)
  const ended = new AbortController()
  const ending = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal
  const samples = follow({ feeds: ctx.ports.feeds, stored: storedSamples(ctx.ports) }, from, ending)
  const changes = input.changes ? changedEvents(ctx.ports.changes, ending) : null
  try {
    for await (const item of mergeStreams(samples, changes)) {
      await stillAllowed()
      let event: TelemetryEvent
      if ('positions' in item) {
        positions = item.positions
        event =
          item.event.type === 'reset'
            ? item.event
            : {
                type: 'samples',
                samples: item.event.samples.map(({ instanceId, sample }) => ({
                  instanceId,
                  ...sample,
                  values: only(sample.values, input.metrics),
                })),
                sentAt: Date.now(),
              }
      } else event = item
      yield tracked(formatEventId(positions), event)
    }
  } finally {
    ended.abort()
  }
})

const storedSamples =
  (ports: Ports) =>
  async (instanceId: string, afterSeq: number, limit: number): Promise<Sample[]> => {
    const rows = await readSamplesAfter(ports.database.pool, { instanceId, afterSeq, limit })
    return rows.map(({ values, ...row }) => ({ ...row, values: decodeValues(values) }))
  }

function only(
  values: MetricValues,
  metrics: readonly MetricName[] | undefined,
): Record<string, number | null> {
  if (!metrics) return { ...values }
  const picked: Record<string, number | null> = {}
  for (const name of metrics) {
    const value = values[name]
    if (value !== undefined) picked[name] = value
  }
  return picked
}
