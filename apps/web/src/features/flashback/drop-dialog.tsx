'use client'
import { useToast } from '@floe/ui'
import { useMutation } from '@tanstack/react-query'
import { useTRPC } from '@/trpc/client'
import { newIdempotencyKey } from '../console/idempotency-key'
import { OperationLink } from '../operation/operation-link'
import type { NamedResult } from './download-button'
import { OrderedDialog } from './ordered-dialog'

/** Drops a result once a person has confirmed it, and stays until it is done. */
export function DropDialog({ named, onClose }: { named: NamedResult; onClose: () => void }) {
  const trpc = useTRPC()
  const toast = useToast()
  const drop = useMutation(trpc.flashback.drop.mutationOptions())
  return (
    <OrderedDialog
      title={`Drop ${named.resultName}?`}
      confirmLabel="Drop result"
      doing={`Dropping ${named.resultName}`}
      order={{
        isPending: drop.isPending,
        error: drop.error,
        submit: (onOrdered) =>
          drop.mutate({ ...named, idempotencyKey: newIdempotencyKey() }, { onSuccess: onOrdered }),
      }}
      onSucceeded={(operationId) => {
        onClose()
        toast({
          title: `${named.resultName} is dropped`,
          action: <OperationLink operationId={operationId} />,
        })
      }}
      onClose={onClose}
    >
      <p>
        The rows in this result are gone then. The table they came from stays as it is, and can be flashed
        back again while the window reaches that far.
      </p>
    </OrderedDialog>
  )
}
