'use client'
import type { InstanceId } from '@floe/domain'
import type { MetricName } from '@floe/telemetry'
import { noteConsoleTime } from '@floe/ui'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useEffectEvent, useRef } from 'react'
import type { LiveSample, TelemetryEvent } from '@/server/api'
import { useTRPC, useTRPCClient } from '@/trpc/client'
import { holdLiveStream } from '../console/live-stream'
import { usePageVisible } from '../console/use-page-visible'

export type { LiveSample } from '@/server/api'
export type StreamStart = { instanceId: InstanceId; afterSeq: number | null }

/** Facts that move often are asked for again at most this often. */
const askAgainMs = 1_000

/**
 * The page's one live subscription: `onSamples` gets them in ascending order per instance, none missing and none twice;
 * `onReset` says that too much was missed, and the number after which the stream goes on. Facts that moved meanwhile
 * (states, operations, incidents) are asked for again. It is closed while the tab is hidden and begins again after the
 * last sample seen, as it does automatically after a broken connection. `start` says after which number each instance's
 * samples are wanted, and is null until that is known; only a change of the set of instances reopens the stream.
 */
export function useTelemetryStream(
  start: readonly StreamStart[] | null,
  metrics: readonly MetricName[],
  onSamples: (samples: readonly LiveSample[]) => void,
  onReset: (instanceId: InstanceId, newestSeq: number) => void,
) {
  const client = useTRPCClient()
  const trpc = useTRPC()
  const queries = useQueryClient()
  const visible = usePageVisible()
  const seen = useRef(new Map<string, number>())
  const moved = useRef(new Set<Noun>())
  const asking = useRef<ReturnType<typeof setTimeout> | null>(null)
  const instances = start?.map((s) => s.instanceId).join(',') ?? null
  const names = metrics.join(',')

  const begin = useEffectEvent(() =>
    (start ?? []).map(({ instanceId, afterSeq }) => ({
      instanceId,
      afterSeq: seen.current.get(instanceId) ?? afterSeq,
    })),
  )
  const askAgain = useEffectEvent(() => {
    asking.current = null
    const paths = {
      instance: trpc.instance,
      operation: trpc.operation,
      incident: trpc.incident,
      host: trpc.host,
    }
    // an answer that is on its way is not given up: on a slow way it would never arrive
    for (const noun of moved.current)
      void queries.invalidateQueries({ queryKey: paths[noun].pathKey() }, { cancelRefetch: false })
    moved.current.clear()
  })
  const handle = useEffectEvent((event: TelemetryEvent) => {
    if (event.type === 'changed') {
      moved.current.add(event.noun)
      asking.current ??= setTimeout(() => askAgain(), askAgainMs)
      return
    }
    if (event.type === 'reset') {
      seen.current.set(event.instanceId, event.newestSeq)
      onReset(event.instanceId, event.newestSeq)
      return
    }
    noteConsoleTime(event.sentAt)
    for (const sample of event.samples) seen.current.set(sample.instanceId, sample.seq)
    onSamples(event.samples)
  })

  useEffect(() => {
    if (instances === null || !visible) return
    const subscription = client.telemetry.stream.subscribe(
      { instances: begin(), metrics: names.split(',') as MetricName[], changes: true },
      { onData: ({ data }) => handle(data) },
    )
    const release = holdLiveStream()
    return () => {
      release()
      subscription.unsubscribe()
      if (asking.current !== null) clearTimeout(asking.current)
      asking.current = null
    }
  }, [client, visible, instances, names])
}

type Noun = Extract<TelemetryEvent, { type: 'changed' }>['noun']
