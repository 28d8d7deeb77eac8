import { type FaultError, fault } from '@floe/domain'
import { OperationConflict } from '@floe/operations/submit'
import { initTRPC, TRPCError } from '@trpc/server'
import superjson from 'superjson'
import type { Context } from './context'
import { auditDenial } from './denials'
import { faultOf, httpCodeOf } from './faults'
import { log } from './log'
import { type AccountRole, AccountRole as Roles } from './routers/account/me.types'

const t = initTRPC.context<Context>().create({
  transformer: superjson,
  sse: { ping: { enabled: true, intervalMs: 3_000 }, client: { reconnectAfterInactivityMs: 10_000 } },
  // never a stack, never a message of the database: what is not a fault is logged and called internal
  errorFormatter: ({ shape, error }) => {
    const fault = faultOf(error)
    return {
      ...shape,
      message: fault.message,
      data: {
        code: shape.data.code,
        httpStatus: shape.data.httpStatus,
        path: shape.data.path,
        fault,
        /** The operation to wait for or to cancel first, where that is why. */
        blockingOperationId:
          error.cause instanceof OperationConflict ? error.cause.blockingOperationId : null,
      },
    }
  },
})

export const router = t.router

/** Anyone may ask, also without a session. A thrown fault keeps its words; the status only says whose mistake it was. */
export const publicProcedure = t.procedure.use(async ({ next, path, ctx }) => {
  const result = await next()
  if (result.ok) return result
  const { error } = result
  if (error.code === 'INTERNAL_SERVER_ERROR') {
    const known = httpCodeOf(error.cause)
    if (known) throw new TRPCError({ code: known, message: error.message, cause: error.cause })
    log.error({ event: 'procedure.failed', path, requestId: ctx.requestId, err: error.cause ?? error })
  }
  return result
})

const rank = (role: AccountRole) => Roles.options.indexOf(role)

/** Who may: the role named or a greater one. Changes also need a same-origin request where a cookie says who asks. */
const requiring = (role: AccountRole) =>
  publicProcedure.use(async ({ ctx, next, path, type, getRawInput }) => {
    const deny = async (code: 'UNAUTHORIZED' | 'FORBIDDEN', denial: FaultError) => {
      await auditDenial(ctx, path, type, denial.fault, getRawInput)
      throw new TRPCError({ code, message: denial.message, cause: denial })
    }
    const { actor } = ctx
    if (!actor)
      return deny(
        'UNAUTHORIZED',
        fault('session.missing', 'you are not signed in', { hint: 'Sign in and try again.' }),
      )
    if (rank(actor.role) < rank(role))
      return deny(
        'FORBIDDEN',
        fault('session.role_too_low', `role "${actor.role}" may not do this`, {
          detail: `It needs role "${role}".`,
          hint: 'Ask an owner or admin of the organisation.',
        }),
      )
    if (type === 'mutation' && actor.kind === 'user' && !ctx.sameOrigin)
      return deny(
        'FORBIDDEN',
        fault('session.cross_origin', 'the request came from another site', {
          hint: 'Use the console itself, or an API token.',
        }),
      )
    return next({ ctx: { ...ctx, actor } })
  })

/** Reads. */
export const viewerProcedure = requiring('viewer')
/** Changes. */
export const operatorProcedure = requiring('operator')
/** Who belongs to the installation: hosts. */
export const adminProcedure = requiring('admin')
