'use client'
import { useNow } from '@floe/ui'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useTRPC } from '@/trpc/client'
import { useStandingFault } from '../console/use-standing-fault'
import { useInstance } from '../instance/instance-context'
import type { RatePoint } from './moment-timeline'
import type { Stretch } from './window-scale'

/** The window moves on in steps of a pixel or so. */
const STEPS = 600
/** A window of a moment could not be drawn. */
const SHORTEST_MS = 10_000
const READ_MS = 5_000

type Point = { at: number; gapBefore: boolean; average: readonly (number | null)[] }
const rateOf = (points: readonly Point[] = []): RatePoint[] =>
  points.map((p) => ({ at: p.at, value: p.average[0] ?? null, gapBefore: p.gapBefore }))

/** The transaction rate of a part of the window, as finely as it is stored; null while it is not read, or of no part. */
export function useRate(view: Stretch | null): readonly RatePoint[] | null {
  const { instanceId } = useInstance()
  const trpc = useTRPC()
  const history = useQuery(
    trpc.telemetry.history.queryOptions(
      {
        instanceId,
        from: Math.floor(view?.from ?? 0),
        to: Math.ceil(view?.to ?? 1),
        metrics: ['tps'],
        maxPoints: 300,
      },
      { enabled: view !== null },
    ),
  )
  const points = history.data?.points
  return useMemo(() => (view && points ? rateOf(points) : null), [view, points])
}

/** The window of this page's instance as its agent reads it now, with its points and the transaction rate in it. */
export function useWindow() {
  const { instanceId, state } = useInstance()
  const trpc = useTRPC()
  const now = useNow()
  const read = useQuery(
    trpc.flashback.read.queryOptions(
      { instanceId },
      { enabled: state === 'running', refetchInterval: READ_MS, retry: false },
    ),
  )
  const oldestAt = read.data?.log?.oldestAt ?? null
  const minutes = oldestAt === null || now === null ? null : Math.max(1, Math.ceil((now - oldestAt) / 60_000))
  const history = useQuery(
    trpc.telemetry.history.queryOptions(
      { instanceId, minutes: minutes ?? 1, metrics: ['tps'], maxPoints: 300 },
      { enabled: minutes !== null, refetchInterval: READ_MS, placeholderData: keepPreviousData },
    ),
  )
  // a standby knows nothing of what it has not replayed
  const newestAt = read.data?.log?.newestAt ?? null
  const newest = now === null ? null : Math.min(now, newestAt ?? now)
  const step = oldestAt === null || now === null ? 1 : Math.max(1_000, (now - oldestAt) / STEPS)
  const end = now === null ? null : newestAt === null ? Math.floor(now / step) * step : Math.floor(newestAt)
  const stretch = useMemo<Stretch | null>(
    () =>
      oldestAt === null || end === null
        ? null
        : { from: Math.floor(oldestAt), to: Math.max(end, oldestAt + SHORTEST_MS) },
    [oldestAt, end],
  )
  const rate = useMemo(() => rateOf(history.data?.points), [history.data])
  return {
    read: read.data ?? null,
    loading: read.isPending && state === 'running',
    fault: useStandingFault(read, instanceId),
    retry: () => void read.refetch(),
    stretch,
    /** The last moment that works; null while it is not known. */
    newest,
    /** Whether that is so because this is a standby. */
    ofStandby: newestAt !== null,
    rate,
  }
}
