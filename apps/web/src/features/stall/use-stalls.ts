'use client'
import type { InstanceId } from '@floe/domain'
import type { TimeRange } from '@floe/ui'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'

export type StallView = RouterOutputs['stall']['list']['stalls'][number]

/** Most stalls that a page reads: as many as can be distinguished on a chart. */
export const mostStalls = 500
const shortRangeMs = 6 * 3_600_000
const none: readonly StallView[] = []

/** The stalls that reach into a range, newest first. `cut` says that there are more. */
export function useStalls(instanceId: InstanceId, range: TimeRange) {
  const trpc = useTRPC()
  const live = range.kind === 'last'
  const short = live && range.ms <= shortRangeMs
  const ends = live ? { minutes: range.ms / 60_000 } : { from: range.from, to: range.to }
  const stored = useQuery(
    trpc.stall.list.queryOptions(
      { instanceId, limit: mostStalls, ...ends },
      { refetchInterval: short ? 5_000 : live ? 30_000 : false, placeholderData: keepPreviousData },
    ),
  )
  const stalls = stored.data?.stalls ?? none
  return {
    stalls,
    cut: stalls.length >= mostStalls,
    loading: stored.isPending || stored.isPlaceholderData,
    fault: stored.error ? faultOf(stored.error) : null,
    retry: () => void stored.refetch(),
  }
}
