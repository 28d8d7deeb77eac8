'use client'
import { decodePoints, type InstanceId, type Point } from '@floe/domain'
import type { MetricName } from '@floe/telemetry'
import { useMemo, useState } from 'react'
import { useTelemetryStream } from '../telemetry/use-telemetry-stream'

const metrics: readonly MetricName[] = ['tps']
const keptMs = 65_000
/** As many instances as one subscription takes. */
const most = 100

/**
 * TPS of the last minute of each instance, kept up by one subscription; what the list was answered with is the
 * beginning. Instances beyond the hundredth are left to the list's own values.
 */
export function useLiveTps(
  instances: readonly { instanceId: InstanceId; tps: string }[],
): ReadonlyMap<string, readonly Point[]> {
  const [live, setLive] = useState<ReadonlyMap<string, readonly Point[]>>(new Map())
  const ids = instances
    .slice(0, most)
    .map((i) => i.instanceId)
    .join(',')
  const start = useMemo(
    () =>
      ids === ''
        ? null
        : (ids.split(',') as InstanceId[]).map((instanceId) => ({ instanceId, afterSeq: null })),
    [ids],
  )
  useTelemetryStream(
    start,
    metrics,
    (samples) =>
      setLive((before) => {
        const next = new Map(before)
        for (const { instanceId, at, values } of samples)
          next.set(instanceId, [
            ...(next.get(instanceId) ?? []).filter((p) => p.at > at - keptMs),
            { at, value: values.tps ?? null },
          ])
        return next
      }),
    () => {},
  )
  return useMemo(() => {
    const merged = new Map<string, readonly Point[]>()
    for (const { instanceId, tps } of instances) {
      const points = live.get(instanceId)
      const stored = decodePoints(tps)
      const first = points?.[0]
      merged.set(instanceId, first && points ? [...stored.filter((p) => p.at < first.at), ...points] : stored)
    }
    return merged
  }, [instances, live])
}
