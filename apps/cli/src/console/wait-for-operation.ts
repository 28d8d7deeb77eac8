import { FaultError, fault, type OperationId, stepWorkWords } from '@floe/domain'
import { tell } from '../output'
import type { ConsoleClient } from './client'
import { followOperation, type OperationDetail } from './follow-operation'

export type { OperationDetail }

/**
 * Waits until an operation has ended and answers it; its steps are shown on standard error as they begin, unless `show` is false. Throws the
 * operation's own fault when it failed. A console that is being restarted meanwhile is waited for.
 */
export async function waitForOperation(
  client: ConsoleClient,
  operationId: OperationId,
  { deadlineMs, show = true }: { deadlineMs?: number; show?: boolean } = {},
): Promise<OperationDetail> {
  let shown = ''
  for await (const { operation } of followOperation(client, operationId, { deadlineMs })) {
    const step = operation.steps.find((s) => s.state === 'running')
    const line =
      step === undefined
        ? ''
        : [step.title, step.message, step.work && stepWorkWords(step.work)].filter(Boolean).join(': ')
    if (show && line !== '' && line !== shown) tell(line)
    shown = line
    if (operation.state === 'succeeded') return operation
    throwUnlessWell(operation)
  }
  throw new Error('the operation was followed past its end')
}

/** Throws the fault of an operation that failed or was cancelled. */
export function throwUnlessWell(
  operation: Pick<OperationDetail, 'operationId' | 'title' | 'state' | 'fault'>,
): void {
  if (operation.state === 'failed')
    throw new FaultError(
      operation.fault ?? {
        code: 'operation.failed',
        message: `operation "${operation.title}" failed`,
        hint: `Run "./floe operation show ${operation.operationId}" for its log.`,
      },
    )
  if (operation.state === 'cancelled')
    throw fault('operation.cancelled', `operation "${operation.title}" was cancelled`)
}
