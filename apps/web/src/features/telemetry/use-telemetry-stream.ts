'use client'
import type { InstanceId } from '@floe/domain'
import type { MetricName } from '@floe/telemetry'
import { noteConsoleTime } from '@floe/ui'
import { useEffect, useEffectEvent, useRef } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPCClient } from '@/trpc/client'
import { usePageVisible } from './use-page-visible'

export type LiveSample = RouterOutputs['telemetry']['latest']['samples'][number]
export type StreamStart = { instanceId: InstanceId; afterSeq: number | null }

/**
 * The page's one live subscription: `onSamples` gets them in ascending order per instance, none missing and none twice;
 * `onReset` says that too much was missed, and the number after which the stream goes on. It is closed while the tab is
 * hidden and begins again after the last sample seen, as it does by itself after a broken connection. `start` says after
 * which number each instance's samples are wanted, and is null until that is known; only a change of the set of
 * instances opens the stream anew.
 */
export function useTelemetryStream(
  start: readonly StreamStart[] | null,
  metrics: readonly MetricName[],
  onSamples: (samples: readonly LiveSample[]) => void,
  onReset: (instanceId: InstanceId, newestSeq: number) => void,
) {
  const client = useTRPCClient()
  const visible = usePageVisible()
  const seen = useRef(new Map<string, number>())
  const instances = start?.map((s) => s.instanceId).join(',') ?? ''
  const names = metrics.join(',')

  const begin = useEffectEvent(() =>
    (start ?? []).map(({ instanceId, afterSeq }) => ({
      instanceId,
      afterSeq: seen.current.get(instanceId) ?? afterSeq,
    })),
  )
  const handle = useEffectEvent((event: RouterEvent) => {
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
    if (instances === '' || !visible) return
    const subscription = client.telemetry.stream.subscribe(
      { instances: begin(), metrics: names.split(',') as MetricName[] },
      { onData: ({ data }) => handle(data) },
    )
    return () => subscription.unsubscribe()
  }, [client, visible, instances, names])
}

type RouterEvent =
  | { type: 'samples'; samples: LiveSample[]; sentAt: number }
  | { type: 'reset'; instanceId: InstanceId; newestSeq: number }
