'use client'
import type { Fault, InstanceId } from '@floe/domain'
import { consoleTime, type TimeRange } from '@floe/ui'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { MAX_POINTS, type RowShape, Timeline, type TimelineRow } from './timeline'
import { type LiveSample, type StreamStart, useTelemetryStream } from './use-telemetry-stream'

/** Longer ranges are read again now and then instead of being followed sample by sample. */
const longestFollowedMs = 6 * 3_600_000
/** As much as an agent keeps. */
const mostReceived = 3_600

export type TimelineView = {
  rows: readonly TimelineRow[]
  /** Changes with the range, the instance and the rows' belonging to them. */
  generation: string
  /** Newest sample of all, also where the charts show an older range. */
  newest: LiveSample | null
  /** End of what the rows hold; null before the first. */
  newestAt: number | null
  stepSeconds: number | null
  /** Nothing has arrived yet. */
  loading: boolean
  /** The rows are still those of the range before. */
  switching: boolean
  fault: Fault | null
  retry: () => void
}

/**
 * History and live values of one instance as one series of rows: history ends at sample N, live begins at N + 1. New
 * samples are always received (for the readings); they become part of the rows only where the range reaches up to now.
 */
export function useTimeline({
  instanceId,
  range,
  shape,
}: {
  instanceId: InstanceId
  range: TimeRange
  /** Stays the same object. */
  shape: RowShape
}): TimelineView {
  const trpc = useTRPC()
  const followed = range.kind === 'last' && range.ms <= longestFollowedMs
  const span = range.kind === 'last' ? range.ms : range.to - range.from
  const query = useQuery(
    trpc.telemetry.history.queryOptions(
      {
        instanceId,
        metrics: [...shape.metrics],
        maximumOf: [...(shape.maximumOf ?? [])],
        maxPoints: MAX_POINTS,
        ...(range.kind === 'last' ? { minutes: range.ms / 60_000 } : { from: range.from, to: range.to }),
      },
      {
        // a followed range is read once and then kept up by the stream; coming back to the page reads it afresh
        staleTime: range.kind === 'last' ? 0 : 30_000,
        gcTime: followed ? 0 : 60_000,
        refetchOnWindowFocus: false,
        refetchOnReconnect: false,
        refetchInterval: range.kind === 'last' && !followed ? Math.max(10_000, span / MAX_POINTS) : false,
        placeholderData: keepPreviousData,
      },
    ),
  )
  const history = query.data
  const fresh = history !== undefined && !query.isPlaceholderData
  const generation = `${instanceId}|${range.kind === 'last' ? `last:${range.ms}` : `${range.from}:${range.to}`}`

  const timeline = useRef<Timeline | null>(null)
  const [shown, setShown] = useState<{ rows: TimelineRow[]; generation: string; newestAt: number | null }>({
    rows: [],
    generation: '',
    newestAt: null,
  })
  const [newest, setNewest] = useState<LiveSample | null>(null)
  // everything received, so that another range needs nothing that is only on its way into the database
  const received = useRef<LiveSample[]>([])
  const reset = useRef<{ seq: number; tries: number } | null>(null)
  const [start, setStart] = useState<readonly StreamStart[] | null>(null)
  const { refetch } = query

  useEffect(() => {
    if (!history || !fresh) return
    const next = new Timeline(history.stepSeconds, shape)
    for (const point of history.points) next.addStored(point)
    if (followed)
      for (const sample of received.current)
        if (history.newestSeq === null || sample.seq > history.newestSeq) next.addLive(sample)
    timeline.current = next
    setShown({ rows: next.rows(), generation, newestAt: next.newestAt })
    setStart((before) =>
      before?.[0]?.instanceId === instanceId ? before : [{ instanceId, afterSeq: history.newestSeq }],
    )
    // after a reset the stream goes on behind what the database may not hold yet
    const behind = reset.current
    if (!behind || (history.newestSeq ?? -1) >= behind.seq || behind.tries >= 5) return
    behind.tries++
    const timer = setTimeout(() => void refetch(), 1_000)
    return () => clearTimeout(timer)
  }, [history, fresh, followed, shape, generation, instanceId, refetch])

  useTelemetryStream(
    start,
    shape.metrics,
    (samples) => {
      const last = samples.at(-1)
      if (!last) return
      received.current.push(...samples)
      if (received.current.length > mostReceived)
        received.current.splice(0, received.current.length - mostReceived)
      setNewest(last)
      if (!followed || shown.generation !== generation || !timeline.current) return
      for (const sample of samples) timeline.current.addLive(sample)
      timeline.current.dropBefore(last.at - span)
      setShown({ rows: timeline.current.rows(), generation, newestAt: timeline.current.newestAt })
    },
    (_, newestSeq) => {
      received.current = []
      reset.current = { seq: newestSeq, tries: 0 }
      void refetch()
    },
  )

  return {
    rows: shown.rows,
    generation: `${generation}|${shown.generation}`,
    newest: newest?.instanceId === instanceId ? newest : null,
    newestAt: shown.newestAt,
    stepSeconds: history?.stepSeconds ?? null,
    loading: shown.generation === '' && !query.error,
    switching: shown.generation !== generation,
    fault: query.error && !history ? faultOf(query.error) : null,
    retry: () => void refetch(),
  }
}

/**
 * The window that charts show: it ends at the newest sample while that is fresh, else now. A range too long to be
 * followed moves in steps of a pixel or so, because nothing finer can be seen.
 */
export function windowOf(range: TimeRange, newestAt: number | null, now: number | null) {
  if (range.kind === 'between') return { from: range.from, to: range.to }
  const at = now ?? consoleTime()
  if (range.ms > longestFollowedMs) {
    const step = range.ms / MAX_POINTS
    const end = Math.ceil(at / step) * step
    return { from: end - range.ms, to: end }
  }
  const to = newestAt !== null && Math.abs(at - newestAt) < 5_000 ? newestAt : at
  return { from: to - range.ms, to }
}
