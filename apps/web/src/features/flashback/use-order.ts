'use client'
import { endedOperationStates, type FlashbackResult, type OperationId } from '@floe/domain'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useEffectEvent } from 'react'
import { useTRPC } from '@/trpc/client'
import { type OperationDetail, useOperation, type WatchedOperation } from '../operation/use-operation'

/** A result with what names it in an order. */
export type ResultRef = Pick<FlashbackResult, 'result' | 'resultName' | 'table' | 'tableName'> & {
  database: string
}

export const hasEnded = (operation: OperationDetail | null): boolean =>
  operation !== null && endedOperationStates.includes(operation.state)

/** Follows an operation that this page began, and reads the lists of the page again when it has ended. */
export function useOrdered(
  operationId: OperationId | null,
  onSucceeded?: (result: Record<string, unknown> | null) => void,
): WatchedOperation | null {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const watched = useOperation(operationId)
  const state = watched?.operation?.state ?? null
  const ended = useEffectEvent((how: string) => {
    void queries.invalidateQueries({ queryKey: trpc.flashback.pathKey() })
    if (how === 'succeeded') onSucceeded?.(watched?.operation?.result ?? null)
  })
  useEffect(() => {
    if (state !== null && endedOperationStates.includes(state)) ended(state)
  }, [state])
  return watched
}
