'use client'
import { type InstanceId, standbySeenOf } from '@floe/domain'
import { type ChartSeries, type SeriesColor, TimeSeriesChart } from '@floe/ui'
import { useQueries } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useTRPC } from '@/trpc/client'
import { lagRows } from './lag-rows'
import type { ClusterDetail } from './use-cluster'

const MINUTES = 15
/** Standbys are stored at moments of their own, up to two points apart. */
const PRESENT_MS = 10_000

/** Replay lag of each standby over the last minutes, as the controller stored it. */
export function LagChart({ detail }: { detail: ClusterDetail }) {
  const trpc = useTRPC()
  const { cluster } = detail
  const primary = cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
  const standbys = cluster.members.filter((m) => m.instanceId !== cluster.primaryInstanceId)
  const history = useQueries({
    queries: standbys.map((m) =>
      trpc.telemetry.history.queryOptions(
        {
          instanceId: m.instanceId as InstanceId,
          minutes: MINUTES,
          metrics: ['replay_delay'],
          maxPoints: 300,
        },
        { refetchInterval: 5_000 },
      ),
    ),
  })
  const series: ChartSeries[] = standbys.slice(0, 6).map((m, i) => ({
    key: m.instanceId,
    label: standbySeenOf(primary, m) ? m.name : `${m.name} (not connected)`,
    // what it has replayed of what it received says nothing of what the primary wrote since
    ended: !standbySeenOf(primary, m),
    color: (i + 1) as SeriesColor,
    source: 'pg_last_xact_replay_timestamp()',
    help: 'age of the last replayed transaction; 0 when everything received is replayed',
  }))
  const answers = history.map((h) => h.data)
  const to = Math.max(0, ...answers.map((a) => a?.to ?? 0))
  // biome-ignore lint/correctness/useExhaustiveDependencies: the answers themselves are what changes
  const rows = useMemo(
    () => lagRows(standbys.map((m, i) => ({ key: m.instanceId, history: answers[i] }))),
    [...answers],
  )
  if (standbys.length === 0) return null
  return (
    <TimeSeriesChart
      title="Replay lag"
      description="How old the newest transaction is that each standby has replayed, over the last 15 minutes."
      unit="s"
      series={series}
      rows={rows}
      from={to - MINUTES * 60_000}
      to={to}
      leastTop={1}
      presentWithinMs={PRESENT_MS}
      loading={history.some((h) => h.isPending)}
      fileName={cluster.name}
    />
  )
}
