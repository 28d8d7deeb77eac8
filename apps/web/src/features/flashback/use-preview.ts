'use client'
import { FlashbackCounts, type InstanceId, type OperationId } from '@floe/domain'
import { useMutation } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { useCluster } from '../cluster/use-cluster'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from '../instance/instance-context'
import { type TableChoice, tableNameOf } from './table-list'
import { useOrdered } from './use-order'
import type { Target } from './use-target'
import { writtenMoment } from './window-scale'

/** Members on which a moment can be looked at: this one first, then the running standbys whose window reaches it, at both ends. */
function useReaders(moment: number | null) {
  const { cluster, instanceId, name } = useInstance()
  const several = cluster.members > 1
  const { data } = useCluster({ enabled: several, everyMs: 10_000 })
  const others = (data?.cluster.members ?? []).filter((m) => {
    const oldest = m.flashback?.oldestAt ?? null
    return (
      m.instanceId !== instanceId &&
      m.memberRole === 'standby' &&
      m.state === 'running' &&
      oldest !== null &&
      (moment === null || (oldest <= moment && moment <= (m.flashback?.newestAt ?? moment)))
    )
  })
  const own = { instanceId, name, memberRole: cluster.memberRole }
  return [own, ...others].map((m) => ({ instanceId: m.instanceId, name: m.name, role: m.memberRole }))
}

/** Rows then and now, counted on a member of the cluster; nothing is changed and nothing is made. */
export function usePreview(
  target: Target,
  table: TableChoice | null,
  moment: number | null,
  onTarget: (change: Partial<Target>) => void,
) {
  const { instanceId } = useInstance()
  const trpc = useTRPC()
  const readers = useReaders(moment)
  const [wanted, setWanted] = useState<InstanceId>(instanceId)
  const reader = readers.find((r) => r.instanceId === wanted) ?? readers[0]
  const order = useMutation(
    trpc.flashback.preview.mutationOptions({
      onSuccess: ({ operationId }: { operationId: OperationId }) => onTarget({ preview: operationId }),
    }),
  )
  const watched = useOrdered(target.preview)
  const state = watched?.operation?.state ?? null
  const counts = FlashbackCounts.safeParse(watched?.operation?.result).data ?? null
  const place = useRef<HTMLElement | null>(null)
  const shown = state === 'succeeded' || state === 'failed'
  // what was asked for from the bar at the end of the screen appears above it
  useEffect(() => {
    if (shown) place.current?.scrollIntoView({ block: 'nearest', behavior: 'smooth' })
  }, [shown])
  return {
    /** Where it is shown. */
    place,
    readers,
    reader: reader?.instanceId ?? instanceId,
    readerName: reader && reader.instanceId !== instanceId ? reader.name : null,
    setReader: setWanted,
    watched,
    counts,
    error: order.error,
    busy:
      order.isPending ||
      (target.preview !== null && state !== 'succeeded' && state !== 'failed' && state !== 'cancelled'),
    begin: () => {
      if (table === null || moment === null || target.database === null) return
      order.mutate({
        instanceId: reader?.instanceId ?? instanceId,
        database: target.database,
        table: table.oid,
        tableName: tableNameOf(table),
        at: writtenMoment(moment),
        idempotencyKey: newIdempotencyKey(),
      })
    },
  }
}
export type Preview = ReturnType<typeof usePreview>
