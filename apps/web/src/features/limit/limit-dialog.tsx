'use client'
import { type Fault, type InstanceId, type InstanceLimits, whyNoLimits, withLimits } from '@floe/domain'
import { ConfirmDialog, Field, Input, useToast } from '@floe/ui'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { newIdempotencyKey } from '../console/idempotency-key'
import { OperationLink } from '../operation/operation-link'
import { refusalOf } from '../operation/refusal'
import { LimitFields } from './limit-fields'
import { limitTexts, typedLimits } from './typed-limits'

/** Asks for other limits and orders them. What cannot be stays in the dialog. */
export function LimitDialog({
  instanceId,
  name,
  before,
  proposed,
  onClose,
}: {
  instanceId: InstanceId
  name: string
  before: InstanceLimits
  /** What stands in the fields first. */
  proposed: InstanceLimits
  onClose: () => void
}) {
  const trpc = useTRPC()
  const toast = useToast()
  const queries = useQueryClient()
  const [texts, setTexts] = useState(() => limitTexts(proposed))
  const [reason, setReason] = useState('')
  const [refused, setRefused] = useState<Fault | null>(null)
  const [pressed, setPressed] = useState(false)
  const { changes, wrong } = typedLimits(texts, before)
  const change = useMutation(
    trpc.instance.limit.mutationOptions({
      onSuccess: ({ operationId }) => {
        void queries.invalidateQueries({ queryKey: trpc.instance.pathKey() })
        toast({
          tone: 'info',
          title: `Limits of ${name} requested`,
          action: <OperationLink operationId={operationId} />,
        })
        onClose()
      },
    }),
  )
  return (
    <ConfirmDialog
      open
      onOpenChange={(open) => (open ? undefined : onClose())}
      title={`Limits of ${name}`}
      confirmLabel="Change limits"
      busy={change.isPending}
      {...(refused ? { fault: refused } : refusalOf(change.error))}
      onConfirm={() => {
        setPressed(true)
        const refusal = wrong.size > 0 ? null : whyNoLimits(withLimits(before, changes))
        setRefused(refusal)
        if (wrong.size > 0 || refusal) return
        if (Object.keys(changes).length === 0) return onClose()
        change.mutate({
          instanceId,
          changes,
          ...(reason.trim() === '' ? {} : { reason: reason.trim() }),
          idempotencyKey: newIdempotencyKey(),
        })
      }}
    >
      <p>
        An empty field is no limit. From “Memory, high” on the kernel takes memory back; at “Memory, max” it
        kills.
      </p>
      <LimitFields texts={texts} wrong={pressed ? wrong : new Map()} onChange={setTexts} />
      <Field label="Why" hint="Kept in the history.">
        {(control) => (
          <Input
            {...control}
            maxLength={500}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
        )}
      </Field>
    </ConfirmDialog>
  )
}
