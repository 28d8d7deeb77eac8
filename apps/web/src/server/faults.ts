import { isDatabaseAway } from '@floe/db'
import { type Fault, FaultError } from '@floe/domain'
import type { TRPCError } from '@trpc/server'
import { ZodError } from 'zod'
import { databaseUnreachable } from './database-check'

type Code = TRPCError['code']

/** True when the control database does not answer now, said by the driver or by Prisma, however deep. */
function isDatabaseUnreachable(error: unknown, depth = 0): boolean {
  if (typeof error !== 'object' || error === null || depth > 4) return false
  if (isDatabaseAway(error)) return true
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  if (typeof code === 'string' && /^P(1001|1002|1008|1017|2024)$/.test(code)) return true
  return isDatabaseUnreachable(cause, depth + 1)
}

/** The status for an error that is known; undefined for one that is not. */
export function httpCodeOf(error: unknown): Code | undefined {
  if (error instanceof FaultError) {
    const { code } = error.fault
    if (code.endsWith('.not_found')) return 'NOT_FOUND'
    if (code.endsWith('.conflict') || code.endsWith('_taken')) return 'CONFLICT'
    // what an agent, or the way to it, has to answer for is not the caller's mistake, and may be over in a moment
    if (code.startsWith('agent.') || code === databaseUnreachable.code) return 'SERVICE_UNAVAILABLE'
    if (code === 'internal') return undefined
    return 'BAD_REQUEST'
  }
  return isDatabaseUnreachable(error) ? 'SERVICE_UNAVAILABLE' : undefined
}

/** The fault a client may see. What is not ours says nothing but that it was logged. */
export function faultOf(error: TRPCError): Fault {
  const { cause } = error
  if (cause instanceof FaultError) return cause.fault
  // an answer of ours that does not fit its schema is our mistake, not the caller's
  if (cause instanceof ZodError && error.code === 'BAD_REQUEST')
    return {
      code: 'input.invalid',
      message: 'invalid input',
      detail: cause.issues.map((i) => `${i.path.join('.') || 'input'}: ${i.message}`).join('; '),
    }
  if (isDatabaseUnreachable(cause)) return databaseUnreachable
  if (error.code === 'INTERNAL_SERVER_ERROR')
    return { code: 'internal', message: 'unexpected error', hint: 'The console’s log says more.' }
  return { code: `request.${error.code.toLowerCase()}`, message: error.message.toLowerCase() }
}
