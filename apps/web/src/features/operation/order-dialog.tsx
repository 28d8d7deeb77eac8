'use client'
import {
  type CommandKind,
  type OperationId,
  type OrderField,
  operationRecords,
  orderFields,
  orderInput,
} from '@floe/domain'
import { Checkbox, ConfirmDialog, Field, Input, Select, useToast } from '@floe/ui'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import type { z } from 'zod'
import { useTRPC } from '@/trpc/client'
import { newIdempotencyKey } from '../console/idempotency-key'
import { OperationLink } from './operation-link'
import { refusalOf } from './refusal'

type Asked = Record<string, string | boolean>
type Mutations = {
  [verb: string]: {
    mutationOptions: (options: {
      onSuccess: (ordered: { operationId: OperationId }) => void
    }) => Parameters<typeof useMutation<{ operationId: OperationId }, Error, Record<string, unknown>>>[0]
  }
}

/**
 * Asks for what an operation needs and orders it, as the kind's record says: what it does, a field for each part of its
 * input, the instance given. Refusals of the console stay in the dialog.
 */
export function OrderDialog({
  kind,
  instanceId,
  name,
  open,
  onOpenChange,
}: {
  kind: CommandKind
  instanceId: string
  name: string
  open: boolean
  onOpenChange: (open: boolean) => void
}) {
  const trpc = useTRPC()
  const toast = useToast()
  const queries = useQueryClient()
  const { title, order } = operationRecords[kind]
  const [asked, setAsked] = useState<Asked>({})
  const [wrong, setWrong] = useState<Record<string, string>>({})
  const procedures = trpc[order.noun as 'instance'] as unknown as Mutations
  const mutation = useMutation(
    (procedures[order.verb] as Mutations[string]).mutationOptions({
      onSuccess: ({ operationId }) => {
        void queries.invalidateQueries({ queryKey: trpc.instance.pathKey() })
        close(false)
        toast({
          tone: 'info',
          title: `${title}: ordered for ${name}`,
          action: <OperationLink operationId={operationId} />,
        })
      },
    }),
  )
  const close = (next: boolean) => {
    onOpenChange(next)
    if (next) return
    setAsked({})
    setWrong({})
    mutation.reset()
  }
  return (
    <ConfirmDialog
      open={open}
      onOpenChange={close}
      title={`${title} on ${name}`}
      confirmLabel={title}
      busy={mutation.isPending}
      {...refusalOf(mutation.error)}
      onConfirm={() => {
        const parsed = (orderInput(kind) as z.ZodObject).safeParse({ ...asked, instanceId })
        setWrong(
          Object.fromEntries(
            (parsed.error?.issues ?? []).map((issue) => [
              String(issue.path[0]),
              asked[String(issue.path[0])] === undefined ? 'must not be empty' : issue.message,
            ]),
          ),
        )
        if (parsed.success) mutation.mutate({ ...asked, instanceId, idempotencyKey: newIdempotencyKey() })
      }}
    >
      <p>{order.command.about}</p>
      {orderFields(kind).map((field) => (
        <Control
          key={field.name}
          field={field}
          value={asked[field.name]}
          error={wrong[field.name]}
          onChange={(value) => setAsked((before) => ({ ...before, [field.name]: value }))}
        />
      ))}
    </ConfirmDialog>
  )
}

/** The control that suits a part of an input: a box to tick, a choice of words, or text. */
function Control({
  field: { title, form, choices, standard },
  value,
  error,
  onChange,
}: {
  field: OrderField
  value: string | boolean | undefined
  error: string | undefined
  onChange: (value: string | boolean) => void
}) {
  const id = useId()
  const shown = value ?? standard ?? ''
  if (form === 'switch')
    return (
      <div className="flex items-center gap-2 text-sm text-ink">
        <Checkbox
          id={id}
          checked={shown === true}
          onCheckedChange={(checked) => onChange(checked === true)}
        />
        <label htmlFor={id}>{title}</label>
      </div>
    )
  return (
    <Field label={title} error={error}>
      {(control) =>
        form === 'choice' ? (
          <Select {...control} value={String(shown)} onChange={(event) => onChange(event.target.value)}>
            {choices.map((word) => (
              <option key={word}>{word}</option>
            ))}
          </Select>
        ) : (
          <Input
            {...control}
            value={String(shown)}
            onChange={(event) => onChange(event.target.value)}
            autoComplete="off"
            autoCapitalize="off"
            spellCheck={false}
          />
        )
      }
    </Field>
  )
}
