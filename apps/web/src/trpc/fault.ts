import { Fault, FaultError, OperationId } from '@floe/domain'
import { TRPCClientError } from '@trpc/client'

/** The fault of anything a call can throw; a console that does not answer is one too. */
export function faultOf(error: unknown): Fault {
  if (error instanceof FaultError) return error.fault
  if (error instanceof TRPCClientError) {
    const parsed = Fault.safeParse((error.data as { fault?: unknown } | null | undefined)?.fault)
    if (parsed.success) return parsed.data
    return {
      code: 'console.unreachable',
      message: 'could not reach the console',
      detail: error.message,
      hint: 'Check that it is running with "./floe status"; this page goes on by itself.',
    }
  }
  return {
    code: 'internal',
    message: 'unexpected error',
    detail: error instanceof Error ? error.message : String(error),
  }
}

/** The operation that a refused one has to wait for; null where that is not why it was refused. */
export function blockingOperationOf(error: unknown): OperationId | null {
  if (!(error instanceof TRPCClientError)) return null
  const data = error.data as { blockingOperationId?: unknown } | null | undefined
  const parsed = OperationId.safeParse(data?.blockingOperationId)
  return parsed.success ? parsed.data : null
}
