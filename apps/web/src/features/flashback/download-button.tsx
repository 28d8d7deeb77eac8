'use client'
import type { InstanceId, OperationId } from '@floe/domain'
import { Button } from '@floe/ui'
import { useMutation } from '@tanstack/react-query'
import { Download } from 'lucide-react'
import { useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { useMayAdminister } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { Refusal } from '../operation/refusal'
import { OperationProgress } from './operation-progress'
import { hasEnded, useOrdered } from './use-order'

/** What names a result in an order. */
export type NamedResult = { instanceId: InstanceId; database: string; result: number; resultName: string }

/** Opens the result for a download, then downloads it. */
export function DownloadButton({ named }: { named: NamedResult }) {
  const trpc = useTRPC()
  const mayAdminister = useMayAdminister()
  const [operationId, setOperationId] = useState<OperationId | null>(null)
  const order = useMutation(
    trpc.flashback.export.mutationOptions({
      onSuccess: (ordered: { operationId: OperationId }) => setOperationId(ordered.operationId),
    }),
  )
  const watched = useOrdered(operationId, () => {
    // an attachment: the page stays
    if (operationId) window.location.assign(`/api/flashback/download?operation=${operationId}`)
    setOperationId(null)
  })
  const begin = () => order.mutate({ ...named, idempotencyKey: newIdempotencyKey() })
  const busy = order.isPending || (operationId !== null && !hasEnded(watched?.operation ?? null))
  return (
    <>
      <Button
        disabled={!mayAdminister}
        title={
          mayAdminister ? 'An audit row records the download' : 'Rows are downloaded by an owner or admin.'
        }
        busy={busy}
        onClick={begin}
      >
        {busy ? null : <Download aria-hidden />}
        Download CSV
      </Button>
      {order.error ? <Refusal error={order.error} /> : null}
      {watched && hasEnded(watched.operation) ? (
        <div className="basis-full">
          <OperationProgress watched={watched} title="Opening the download" onAgain={begin} />
        </div>
      ) : null}
    </>
  )
}
