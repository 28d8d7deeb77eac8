'use client'
import { noteConsoleTime } from '@floe/ui'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useEffectEvent } from 'react'
import { useTRPC, useTRPCClient } from '@/trpc/client'
import { useNoLiveStream } from '../console/live-stream'
import { usePageVisible } from '../console/use-page-visible'

/** How many the bell shows by themselves. */
export const BELL_SHOWS = 5
/** A page that is being loaded may be about to open a stream of its own. */
const SETTLE_MS = 1_000

/**
 * The newest open incidents and how many there are. Sent live: by the page's own stream where it has one (that of
 * telemetry says it, that of an operation does not: then it is asked for every 10 s), else by one for this purpose.
 */
export function useOpenIncidents() {
  const trpc = useTRPC()
  const client = useTRPCClient()
  const queries = useQueryClient()
  const visible = usePageVisible()
  const alone = useNoLiveStream()
  const query = useQuery(trpc.incident.list.queryOptions({ limit: BELL_SHOWS }, { refetchInterval: 10_000 }))
  const moved = useEffectEvent(() =>
    queries.invalidateQueries({ queryKey: trpc.incident.pathKey() }, { cancelRefetch: false }),
  )
  useEffect(() => {
    if (!visible || !alone) return
    let subscription: { unsubscribe(): void } | undefined
    const timer = setTimeout(() => {
      subscription = client.incident.watch.subscribe(undefined, {
        onData: ({ now }) => {
          noteConsoleTime(now)
          void moved()
        },
      })
    }, SETTLE_MS)
    return () => {
      clearTimeout(timer)
      subscription?.unsubscribe()
    }
  }, [client, visible, alone])
  return query
}
