'use client'
import type { SettingScope } from '@floe/domain'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback } from 'react'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'

/**
 * Settings as each member itself describes them, asked of it at this moment; all, or those named. With `everyMs` they are
 * asked again while they are looked at, so that a change by command or by hand shows; drafts lie over what is read.
 */
export function useSettings(
  scope: SettingScope,
  { names, everyMs }: { names?: readonly string[]; everyMs?: number } = {},
) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const query = useQuery(
    trpc.setting.list.queryOptions(
      { scope, ...(names ? { names: [...names] } : {}) },
      { refetchOnWindowFocus: true, refetchInterval: everyMs ?? false },
    ),
  )
  const refresh = useCallback(
    () => void queries.invalidateQueries({ queryKey: trpc.setting.pathKey() }),
    [queries, trpc],
  )
  return {
    settings: query.data?.settings,
    members: query.data?.members ?? [],
    observedAt: query.data?.observedAt ?? null,
    fault: query.error ? faultOf(query.error) : null,
    loading: query.isPending,
    retry: () => void query.refetch(),
    refresh,
  }
}
