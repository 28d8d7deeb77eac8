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
      hint: 'Check that it is running with "./floe status"; this page reconnects automatically.',
    }
  }
  return {
    code: 'internal',
    message: 'unexpected error',
    detail: error instanceof Error ? error.message : String(error),
  }
}

/** Statuses of requests that fail for the caller's part and yet may succeed a moment later: too slow, too many. */
const passing = [408, 429]

/** True of an answer that asking again does not change: the console says that it is the caller's mistake (4xx). */
export function isFinal(error: unknown): boolean {
  if (!(error instanceof TRPCClientError)) return false
  const { httpStatus } = (error.data ?? {}) as { httpStatus?: unknown }
  return (
    typeof httpStatus === 'number' && httpStatus >= 400 && httpStatus < 500 && !passing.includes(httpStatus)
  )
}

/** True where what was asked for does not exist, or cannot exist under such a name. */
export function isNotFound(fault: Fault | null): boolean {
  return fault !== null && (fault.code.endsWith('.not_found') || fault.code === 'input.invalid')
}

/** The operation that a refused one has to wait for; null where that is not why it was refused. */
export function blockingOperationOf(error: unknown): OperationId | null {
  if (!(error instanceof TRPCClientError)) return null
  const data = error.data as { blockingOperationId?: unknown } | null | undefined
  const parsed = OperationId.safeParse(data?.blockingOperationId)
  return parsed.success ? parsed.data : null
}
