'use client'
import { FlashbackSwapped } from '@floe/domain'
import { Alert } from '@floe/ui'
import { useMutation } from '@tanstack/react-query'
import { useTRPC } from '@/trpc/client'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from '../instance/instance-context'
import { OperationLink } from '../operation/operation-link'
import { OrderedDialog } from './ordered-dialog'
import { rowsInWords } from './table-events'
import type { ResultRef } from './use-order'

/** Exchanges the rows of a table and a result, after the instance's name was typed; then follows it. */
export function SwapDialog({ result, onClose }: { result: ResultRef; onClose: () => void }) {
  const trpc = useTRPC()
  const { instanceId, name } = useInstance()
  const swap = useMutation(trpc.flashback.swap.mutationOptions())
  return (
    <OrderedDialog
      title={`Swap ${result.tableName} and ${result.resultName}`}
      confirmLabel="Swap"
      typedName={name}
      doing="Swapping the rows"
      order={{
        isPending: swap.isPending,
        error: swap.error,
        submit: (onOrdered) =>
          swap.mutate(
            {
              instanceId,
              database: result.database,
              result: result.result,
              resultName: result.resultName,
              tableName: result.tableName,
              confirmName: name,
              idempotencyKey: newIdempotencyKey(),
            },
            { onSuccess: onOrdered },
          ),
      }}
      done={(outcome, operationId) => {
        const swapped = FlashbackSwapped.safeParse(outcome).data
        if (!swapped) return null
        return (
          <Alert
            tone="good"
            title={`${result.tableName} has ${rowsInWords(swapped.rowsNow)} now`}
            actions={<OperationLink operationId={operationId} />}
          >
            The {rowsInWords(swapped.rowsBefore)} that it had before are in {result.resultName}.
          </Alert>
        )
      }}
      onClose={onClose}
    >
      <p>
        {result.tableName} then has exactly the rows of {result.resultName}. The rows that it has now, also
        those added since, move to {result.resultName} and can be swapped back.
      </p>
      <p>
        Nobody can read or write {result.tableName} while it is swapped. Grants, views, indexes and foreign
        keys of the table stay.
      </p>
    </OrderedDialog>
  )
}
