'use client'
import { type InstanceId, standbySeenOf } from '@floe/domain'
import { type ChartRow, type ChartSeries, type SeriesColor, TimeSeriesChart } from '@floe/ui'
import { useQueries } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useTRPC } from '@/trpc/client'
import type { ClusterDetail } from './use-cluster'

const MINUTES = 15
const BUCKET_MS = 3_000

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
    // the newest value of one that is away is of then
    label: standbySeenOf(primary, m) ? m.name : `${m.name} (not connected)`,
    color: (i + 1) as SeriesColor,
    source: 'pg_last_xact_replay_timestamp()',
    help: 'age of the last replayed transaction; 0 when everything received is replayed',
  }))
  const answers = history.map((h) => h.data)
  const to = Math.max(0, ...answers.map((a) => a?.to ?? 0))
  // biome-ignore lint/correctness/useExhaustiveDependencies: the answers themselves are what changes
  const rows = useMemo(
    () =>
      merge(
        answers,
        standbys.map((m) => m.instanceId),
      ),
    [to, answers.length],
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
      loading={history.some((h) => h.isPending)}
      fileName={cluster.name}
    />
  )
}

type Answer = { at: number[]; gapBefore: boolean[]; average: Record<string, (number | null)[]> } | undefined

/** One row for each moment of any standby; what one did not measure then is null. */
function merge(answers: readonly Answer[], keys: readonly string[]): ChartRow[] {
  const rows = new Map<number, ChartRow>()
  answers.forEach((answer, i) => {
    const key = keys[i] as string
    answer?.at.forEach((at, n) => {
      // members are sampled at moments of their own: what lies within one bucket stands beside each other
      const bucket = Math.round(at / BUCKET_MS) * BUCKET_MS
      const row = rows.get(bucket) ?? ({ at: bucket } as ChartRow)
      row[key] = answer.average.replay_delay?.[n] ?? null
      rows.set(bucket, row)
    })
  })
  return [...rows.values()].sort((a, b) => a.at - b.at)
}
