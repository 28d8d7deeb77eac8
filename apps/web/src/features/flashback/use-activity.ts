'use client'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useTRPC } from '@/trpc/client'
import { useStandingFault } from '../console/use-standing-fault'
import { useInstance } from '../instance/instance-context'
import { groupEvents } from './table-events'

/** The agent reads on with each question while it has not read the whole window. */
const READING_MS = 1_000
const READ_MS = 5_000

/** What WAL of the window has of the tables of a database, or of one; null asks nothing. */
export function useActivity(database: string | null, table: number | null) {
  const { instanceId, state } = useInstance()
  const trpc = useTRPC()
  const read = useQuery(
    trpc.flashback.activity.queryOptions(
      { instanceId, database: database ?? '', table },
      {
        enabled: database !== null && state === 'running',
        refetchInterval: ({ state: { data } }) => (data && !data.complete ? READING_MS : READ_MS),
        retry: false,
      },
    ),
  )
  const fault = useStandingFault(read, `${instanceId} ${database}`)
  const events = read.data?.events
  const groups = useMemo(() => groupEvents(events ?? []), [events])
  return {
    groups,
    /** The part of the window that was read; null where nothing was yet. */
    covered:
      read.data && read.data.coveredFrom !== null && read.data.coveredTo !== null
        ? { from: read.data.coveredFrom, to: read.data.coveredTo, complete: read.data.complete }
        : null,
    /** Rows of one partition below which its changes are not counted; null where there are no partitions. */
    leastPartitionRows: read.data?.leastPartitionRows ?? null,
    loading: read.isPending && read.fetchStatus !== 'idle' && fault === null,
    fault,
    retry: () => void read.refetch(),
  }
}
