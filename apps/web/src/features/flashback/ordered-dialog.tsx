'use client'
import type { OperationId } from '@floe/domain'
import { Button, ConfirmDialog, Dialog } from '@floe/ui'
import { type ReactNode, useState } from 'react'
import { refusalOf } from '../operation/refusal'
import { OperationProgress } from './operation-progress'
import { useOrdered } from './use-order'

/** What has been ordered, once the operation is known. */
export type Ordered = { operationId: OperationId }

/** Asks for a person's word, orders an operation with it, and follows that to its end. */
export function OrderedDialog({
  title,
  confirmLabel,
  typedName,
  doing,
  order,
  done,
  onSucceeded,
  onClose,
  children,
}: {
  title: string
  confirmLabel: string
  /** The name that has to be typed; none: one press confirms. */
  typedName?: string
  /** What is going on once it is ordered. */
  doing: string
  order: {
    isPending: boolean
    error: unknown
    submit: (onOrdered: (ordered: Ordered) => void) => void
  }
  /** What is shown in the end; null: the course of the operation. */
  done?: (result: unknown, operationId: OperationId) => ReactNode | null
  onSucceeded?: (operationId: OperationId) => void
  onClose: () => void
  children: ReactNode
}) {
  const [operationId, setOperationId] = useState<OperationId | null>(null)
  const watched = useOrdered(operationId, () => {
    if (operationId) onSucceeded?.(operationId)
  })
  const change = (open: boolean) => {
    if (!open) onClose()
  }
  if (watched && operationId) {
    const outcome = done?.(watched.operation?.result, operationId) ?? null
    return (
      <Dialog open onOpenChange={change} title={title}>
        <div className="flex flex-col gap-3 pb-3">
          {outcome ?? <OperationProgress watched={watched} title={doing} />}
          <div className="flex justify-end">
            <Button onClick={onClose}>{outcome ? 'Done' : 'Close'}</Button>
          </div>
        </div>
      </Dialog>
    )
  }
  return (
    <ConfirmDialog
      open
      onOpenChange={change}
      title={title}
      confirmLabel={confirmLabel}
      danger
      {...(typedName === undefined ? {} : { typedName })}
      busy={order.isPending}
      {...refusalOf(order.error)}
      onConfirm={() => order.submit((ordered) => setOperationId(ordered.operationId))}
    >
      {children}
    </ConfirmDialog>
  )
}
