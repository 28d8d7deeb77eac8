import {
  type OperationInput,
  type OrderedKind,
  type OrdersOf,
  operationRecords,
  orderedKinds,
  orderInput,
} from '@floe/domain'
import type { TRPCMutationProcedure } from '@trpc/server'
import type { z } from 'zod'
import { operatorProcedure } from '../../procedures'
import { IdempotencyKey, OperationRef } from './operation.types'
import { submit } from './submit'

type Order<K extends OrderedKind> = TRPCMutationProcedure<{
  input: z.input<ReturnType<typeof orderInput<K>>> & { idempotencyKey?: string | undefined }
  output: OperationRef
  meta: unknown
}>
type Orders<Noun extends string> = {
  [Verb in keyof OrdersOf<Noun>]: Order<Extract<OrdersOf<Noun>[Verb], OrderedKind>>
}

/** What every change that orders an operation is asked with besides its own input. */
const withKey = { idempotencyKey: IdempotencyKey.optional() }

/**
 * The procedures of a noun that order an operation and do nothing else, one for each kind whose record says so (`order`):
 * who may (`role` of the record, else an operator) asks with the kind's own input, and is answered with the operation's id at
 * once. Each throws what submit() does.
 */
export function ordersOf<Noun extends string>(noun: Noun): Orders<Noun> {
  const kinds = orderedKinds(noun)
  const procedures = kinds.map((kind) => {
    const procedure = operatorProcedure
      .input(orderInput(kind).extend(withKey))
      .output(OperationRef)
      .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
        submit(ctx, { kind, input: input as OperationInput<typeof kind>, idempotencyKey }),
      )
    return [operationRecords[kind].order.verb, procedure]
  })
  return Object.fromEntries(procedures)
}
