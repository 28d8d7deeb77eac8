'use client'
import type { OperationId } from '@floe/domain'
import { noteConsoleTime, useToast } from '@floe/ui'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { createElement, useEffect } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { useInstance } from '../instance/instance-context'
import { OperationLink } from '../operation/operation-link'

export type ClusterDetail = RouterOutputs['cluster']['show']
export type Member = ClusterDetail['cluster']['members'][number]
export type Candidate = ClusterDetail['candidates']['switchover'][number]

/** The cluster of this page's instance, kept fresh: every `everyMs`, and sooner while an operation works on it. */
export function useCluster({ enabled = true, everyMs = 1_500 } = {}) {
  const trpc = useTRPC()
  const { cluster } = useInstance()
  const query = useQuery(
    trpc.cluster.show.queryOptions(
      { clusterId: cluster.clusterId },
      { enabled, refetchInterval: ({ state: { data } }) => (data?.openOperation ? 700 : everyMs) },
    ),
  )
  const consoleNow = query.data?.now
  useEffect(() => {
    if (consoleNow !== undefined) noteConsoleTime(consoleNow)
  }, [consoleNow])
  return query
}

/** The verbs of a cluster as mutations; each reports in a toast that it was asked for. */
export function useClusterVerbs() {
  const trpc = useTRPC()
  const toast = useToast()
  const queries = useQueryClient()
  const asked = (title: string) => ({
    onSuccess: ({ operationId }: { operationId: OperationId }) => {
      void queries.invalidateQueries({ queryKey: trpc.cluster.pathKey() })
      void queries.invalidateQueries({ queryKey: trpc.instance.pathKey() })
      toast({ tone: 'info', title, action: createElement(OperationLink, { operationId }) })
    },
  })
  return {
    createStandby: useMutation(trpc.standby.create.mutationOptions(asked('Standby requested'))),
    remove: useMutation(trpc.standby.remove.mutationOptions(asked('Removal requested'))),
    promote: useMutation(trpc.standby.promote.mutationOptions(asked('Promotion requested'))),
    rejoin: useMutation(trpc.standby.rejoin.mutationOptions(asked('Rejoin requested'))),
    reclone: useMutation(trpc.standby.reclone.mutationOptions(asked('Rebuild requested'))),
    switchover: useMutation(trpc.cluster.switchover.mutationOptions(asked('Switchover requested'))),
    failover: useMutation(trpc.cluster.failover.mutationOptions(asked('Failover requested'))),
    synchronous: useMutation(trpc.cluster.synchronous.mutationOptions(asked('Change requested'))),
    automatic: useMutation(trpc.cluster.automatic.mutationOptions(asked('Change requested'))),
    pageRepair: useMutation(trpc.cluster.pageRepair.mutationOptions(asked('Change requested'))),
    recover: useMutation(trpc.cluster.recover.mutationOptions(asked('Recovery requested'))),
    commitMode: useMutation(trpc.cluster.commitMode.mutationOptions(asked('Change requested'))),
  }
}
