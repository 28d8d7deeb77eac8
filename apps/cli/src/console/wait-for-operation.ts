import { FaultError, fault, type OperationId, stepWorkWords } from '@floe/domain'
import type { RouterOutputs } from '@floe/web/api'
import type { ConsoleClient } from './client'

export type OperationDetail = RouterOutputs['operation']['show']['operation']

const LOOK_MS = 100
/** Steps have deadlines of their own; this only bounds a console or controller that is gone. */
const SILENCE_MS = 120_000

/**
 * Waits until an operation has ended and answers it; its steps are shown on standard error as they begin, unless `show` is false. Throws the
 * operation's own fault when it failed. A console that is being restarted meanwhile is waited for.
 */
export async function waitForOperation(
  { trpc }: ConsoleClient,
  operationId: OperationId,
  { deadlineMs = Number.POSITIVE_INFINITY, show = true }: { deadlineMs?: number; show?: boolean } = {},
): Promise<OperationDetail> {
  let shown = ''
  let answered = Date.now()
  const end = answered + deadlineMs
  for (;;) {
    let operation: OperationDetail | undefined
    try {
      operation = (await trpc.operation.show.query({ operationId })).operation
      answered = Date.now()
    } catch (error) {
      if (Date.now() - answered > SILENCE_MS) throw error
    }
    if (operation !== undefined) {
      const step = operation.steps.find((s) => s.state === 'running')
      const line =
        step === undefined
          ? ''
          : [step.title, step.message, step.work && stepWorkWords(step.work)].filter(Boolean).join(': ')
      if (show && line !== '' && line !== shown) process.stderr.write(`floe: ${line}\n`)
      shown = line
      if (operation.state === 'succeeded') return operation
      if (operation.state === 'failed')
        throw new FaultError(
          operation.fault ?? {
            code: 'operation.failed',
            message: `operation "${operation.title}" failed`,
            hint: `Run "./floe operation show ${operationId}" for its log.`,
          },
        )
      if (operation.state === 'cancelled')
        throw fault('operation.cancelled', `operation "${operation.title}" was cancelled`)
    }
    if (Date.now() > end)
      throw fault('operation.not_ended', 'the operation has not ended in time', {
        hint: `Look at it with "./floe operation show ${operationId}".`,
      })
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
