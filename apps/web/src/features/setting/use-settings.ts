'use client'
import type { InstanceId } from '@floe/domain'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback } from 'react'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'

// a change by command, from another page or by hand shows without a press; drafts lie over what is read
const NAMED_EVERY_MS = 5_000
const ALL_EVERY_MS = 30_000

/** Settings as the instance itself describes them, asked of it now and again while they are looked at; all, or those named. */
export function useSettings(instanceId: InstanceId, names?: readonly string[]) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const query = useQuery(
    trpc.setting.list.queryOptions(
      { instanceId, ...(names ? { names: [...names] } : {}) },
      { refetchOnWindowFocus: true, refetchInterval: names ? NAMED_EVERY_MS : ALL_EVERY_MS },
    ),
  )
  const refresh = useCallback(
    () => void queries.invalidateQueries({ queryKey: trpc.setting.pathKey() }),
    [queries, trpc],
  )
  return {
    settings: query.data?.settings,
    observedAt: query.data?.observedAt ?? null,
    fault: query.error ? faultOf(query.error) : null,
    loading: query.isPending,
    retry: () => void query.refetch(),
    refresh,
  }
}
