'use client'
import { useQuery } from '@tanstack/react-query'
import { useTRPC } from '@/trpc/client'
import { useStandingFault } from '../console/use-standing-fault'
import { useInstance } from '../instance/instance-context'

const READ_MS = 2_000

/** Shared Server of this page's instance, as its agent reads it now. */
export function useSharedServer() {
  const { instanceId, state } = useInstance()
  const trpc = useTRPC()
  const query = useQuery(
    trpc.sharedServer.read.queryOptions(
      { instanceId },
      { enabled: state === 'running', refetchInterval: READ_MS, retry: false },
    ),
  )
  return {
    read: query.data ?? null,
    fault: useStandingFault(query, instanceId),
    retry: () => void query.refetch(),
  }
}
