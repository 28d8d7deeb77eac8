'use client'
import type { InstanceId } from '@floe/domain'
import type { TimeRange } from '@floe/ui'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'

export type CheckpointView = RouterOutputs['checkpoint']['list']['checkpoints'][number]
export type RunningCheckpointView = NonNullable<RouterOutputs['checkpoint']['running']['running']>

/** Most checkpoints that a page reads: as many as can be told apart on a chart. */
const most = 1_000
/** Up to this range the newest few are enough, and they are read often. */
const shortRangeMs = 6 * 3_600_000

/**
 * The checkpoints of a range, newest first, and the one that is running. Those that ended but are not stored yet come
 * from the agent. `underway` says whether the live values show a checkpoint running; while they do, its progress is
 * asked for more often.
 */
export function useCheckpoints(instanceId: InstanceId, range: TimeRange, underway: boolean) {
  const trpc = useTRPC()
  const live = range.kind === 'last'
  const short = live && range.ms <= shortRangeMs
  const ends = live ? {} : { from: range.from, to: range.to }
  const stored = useQuery(
    trpc.checkpoint.list.queryOptions(
      { instanceId, limit: short ? 200 : most, ...ends },
      { refetchInterval: short ? 5_000 : live ? 30_000 : false, placeholderData: keepPreviousData },
    ),
  )
  const probe = useQuery(
    trpc.checkpoint.running.queryOptions(
      { instanceId },
      { enabled: live, refetchInterval: underway ? 1_000 : 4_000, retry: false },
    ),
  )
  const list = stored.data?.checkpoints
  const recent = live ? probe.data?.recent : undefined
  const checkpoints = useMemo(() => {
    const bySeq = new Map<number, CheckpointView>()
    for (const c of [...(list ?? []), ...(recent ?? [])]) bySeq.set(c.seq, c)
    return [...bySeq.values()].sort((a, b) => b.completedAt - a.completedAt)
  }, [list, recent])
  return {
    checkpoints,
    running: live ? (probe.data?.running ?? null) : null,
    loading: stored.isPending,
    fault: stored.error ? faultOf(stored.error) : null,
    retry: () => void stored.refetch(),
  }
}
