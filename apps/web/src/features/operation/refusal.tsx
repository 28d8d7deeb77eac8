import { FaultAlert } from '@floe/ui'
import type { ReactNode } from 'react'
import { blockingOperationOf, faultOf } from '@/trpc/fault'
import { OperationLink } from './operation-link'

/** Why a change was not begun; where another operation has not ended, with the way to it. */
export function Refusal({ error, onRetry }: { error: unknown; onRetry?: (() => void) | undefined }) {
  return <FaultAlert fault={faultOf(error)} onRetry={onRetry} actions={wayOut(error)} />
}

/** The same for a dialog that asks: `<ConfirmDialog {...refusalOf(stop.error)} …>`. */
export function refusalOf(error: unknown) {
  return error ? { fault: faultOf(error), faultActions: wayOut(error) } : { fault: null }
}

/** A link to the operation that has to end first, where one is named. */
export function wayOut(error: unknown): ReactNode {
  const blocking = blockingOperationOf(error)
  return blocking ? <OperationLink operationId={blocking}>Open that operation</OperationLink> : undefined
}
