'use client'
import { endedOperationStates, type Fault, type OperationId } from '@floe/domain'
import { noteConsoleTime } from '@floe/ui'
import { useEffect, useState } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPCClient } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { holdLiveStream } from '../console/live-stream'
import { usePageVisible } from '../console/use-page-visible'
import { appendLog, type OperationLogLine } from './append-log'

export type OperationDetail = RouterOutputs['operation']['show']['operation']
export type { OperationLogLine } from './append-log'
export type WatchedOperation = {
  operationId: OperationId
  operation: OperationDetail | null
  log: readonly OperationLogLine[]
  fault: Fault | null
}

/** Watches one operation until it has ended: its state, steps and log as they move. Null watches nothing. */
export function useOperation(operationId: OperationId | null): WatchedOperation | null {
  const client = useTRPCClient()
  const visible = usePageVisible()
  const [watched, setWatched] = useState<WatchedOperation | null>(null)
  const current = watched?.operationId === operationId ? watched : null
  const ended = current?.operation ? endedOperationStates.includes(current.operation.state) : false
  const follow = operationId !== null && visible && !ended

  useEffect(() => {
    if (!follow || operationId === null) return
    const subscription = client.operation.watch.subscribe(
      { operationId },
      {
        onData: ({ data }) => {
          noteConsoleTime(data.now)
          setWatched((before) => ({
            operationId,
            operation: data.operation,
            log: appendLog(before?.operationId === operationId ? before.log : [], data.log),
            fault: null,
          }))
        },
        onError: (error) =>
          setWatched((before) => ({
            operationId,
            operation: before?.operationId === operationId ? before.operation : null,
            log: before?.operationId === operationId ? before.log : [],
            fault: faultOf(error),
          })),
      },
    )
    const release = holdLiveStream()
    return () => {
      release()
      subscription.unsubscribe()
    }
  }, [client, operationId, follow])

  if (operationId === null) return null
  return current ?? { operationId, operation: null, log: [], fault: null }
}
