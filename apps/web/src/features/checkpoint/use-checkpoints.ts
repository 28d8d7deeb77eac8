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

/** Most checkpoints that a page reads: as many as can be distinguished on a chart. */
export const mostCheckpoints = 1_000
/** Up to this range they are read often. */
const shortRangeMs = 6 * 3_600_000

/** Those of checkpoints, newest first, that were completed from a moment on. */
export function completedFrom<C extends { completedAt: number }>(
  newestFirst: readonly C[],
  from: number,
): number {
  const past = newestFirst.findIndex((c) => c.completedAt < from)
  return past === -1 ? newestFirst.length : past
}

/**
 * The checkpoints completed in a range, newest first, and the one that is running; `from` is where the range begins now.
 * Those that ended but are not stored yet come from the agent. `cut` says that the range has more than the newest that are
 * read. `underway` says whether the live values show a checkpoint running; while they do, its progress is
 * asked for more often.
 */
export function useCheckpoints(instanceId: InstanceId, range: TimeRange, from: number, underway: boolean) {
  const trpc = useTRPC()
  const live = range.kind === 'last'
  const short = live && range.ms <= shortRangeMs
  const ends = live ? { minutes: range.ms / 60_000 } : { from: range.from, to: range.to }
  const stored = useQuery(
    trpc.checkpoint.list.queryOptions(
      { instanceId, limit: mostCheckpoints, ...ends },
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
  const known = useMemo(() => {
    const bySeq = new Map<number, CheckpointView>()
    for (const c of [...(list ?? []), ...(recent ?? [])]) bySeq.set(c.seq, c)
    return [...bySeq.values()].sort((a, b) => b.completedAt - a.completedAt)
  }, [list, recent])
  // the range moves on between two answers; the array stays the same as long as it holds the same ones
  const count = completedFrom(known, from)
  const checkpoints = useMemo(() => known.slice(0, count), [known, count])
  return {
    checkpoints,
    cut: (list?.length ?? 0) >= mostCheckpoints,
    running: live ? (probe.data?.running ?? null) : null,
    stall: live ? (probe.data?.stall ?? null) : null,
    // the answer for another range says nothing about this one
    loading: stored.isPending || stored.isPlaceholderData,
    fault: stored.error ? faultOf(stored.error) : null,
    retry: () => void stored.refetch(),
  }
}
