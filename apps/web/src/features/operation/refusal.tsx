import { FaultAlert } from '@floe/ui'
import { blockingOperationOf, faultOf } from '@/trpc/fault'
import { OperationLink } from './operation-link'

/** Why a change was not begun; where another operation has not ended, with the way to it. */
export function Refusal({ error, onRetry }: { error: unknown; onRetry?: (() => void) | undefined }) {
  const blocking = blockingOperationOf(error)
  return (
    <FaultAlert
      fault={faultOf(error)}
      onRetry={onRetry}
      actions={
        blocking ? <OperationLink operationId={blocking}>Open that operation</OperationLink> : undefined
      }
    />
  )
}
