import { type FaultError, fault } from '@floe/domain'
import { OperationConflict } from '@floe/operations/submit'
import { initTRPC, TRPCError } from '@trpc/server'
import { getHTTPStatusCodeFromError } from '@trpc/server/http'
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc'
import superjson from 'superjson'
import type { Context } from './context'
import { auditDenial } from './denials'
import { faultOf, httpCodeOf } from './faults'
import { eachWithoutHiddenSettings, withoutHiddenSettings } from './hidden-values'
import { log } from './log'
import { type AccountRole, mayAsMuch } from './routers/account/account.types'
import { unstorableText } from './text'

/** A procedure says the least role that it needs. */
const builder = initTRPC.context<Context>().meta<{ role: AccountRole }>()

const t = builder.create({
  transformer: superjson,
  sse: { ping: { enabled: true, intervalMs: 3_000 }, client: { reconnectAfterInactivityMs: 10_000 } },
  // never a stack, never a message of the database: what is not a fault is logged and called internal
  errorFormatter: ({ shape, error }) => {
    const fault = faultOf(error)
    // a stream's generator throws past the procedures below: the client judges by this status whether to ask again
    const code = (error.code === 'INTERNAL_SERVER_ERROR' && httpCodeOf(error.cause)) || error.code
    return {
      ...shape,
      code: TRPC_ERROR_CODES_BY_KEY[code],
      message: fault.message,
      data: {
        code,
        httpStatus: getHTTPStatusCodeFromError(new TRPCError({ code })),
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

/** A thrown fault keeps its words; the status only says whose mistake it was. */
const procedure = t.procedure.use(async ({ next, path, ctx }) => {
  const result = await next()
  if (result.ok) return result
  const { error } = result
  if (error.code === 'INTERNAL_SERVER_ERROR') {
    const known = httpCodeOf(error.cause)
    if (known) throw new TRPCError({ code: known, message: error.message, cause: error.cause })
    log.error('procedure.failed', { path, requestId: ctx.requestId, err: error.cause ?? error })
  }
  return result
})

/** Input that no column of the control database could hold is refused before anything looks at it. */
const storable = t.middleware(async ({ next, getRawInput }) => {
  const where = unstorableText(await getRawInput())
  if (where !== null) {
    const cause = fault('input.invalid', 'invalid input', {
      detail: `${where}: must not contain the character U+0000 or half of a surrogate pair`,
    })
    throw new TRPCError({ code: 'BAD_REQUEST', message: cause.message, cause })
  }
  return next()
})

/** Anyone may ask, also without a session. */
export const publicProcedure = procedure.use(storable)

/** Said to somebody whose role is not enough. */
export const roleTooLow = (role: AccountRole, needed: AccountRole): FaultError =>
  fault('session.role_too_low', `role "${role}" may not do this`, {
    detail: `It needs role "${needed}".`,
    hint:
      needed === 'owner' ? 'Ask an owner of the organisation.' : 'Ask an owner or admin of the organisation.',
  })

/**
 * Who may: the role named or a greater one. Changes, and whatever a viewer may not ask, also need a same-origin request
 * where a cookie says who asks: a link on another site’s page brings the cookie along.
 */
const requiring = (role: AccountRole) =>
  procedure
    .meta({ role })
    .use(async ({ ctx, next, path, type, getRawInput }) => {
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
      if (!mayAsMuch(actor.role, role)) return deny('FORBIDDEN', roleTooLow(actor.role, role))
      if ((type === 'mutation' || role !== 'viewer') && actor.kind === 'user' && !ctx.sameOrigin)
        return deny(
          'FORBIDDEN',
          fault('session.cross_origin', 'the request came from another site', {
            hint: 'Use the console itself, or an API token.',
          }),
        )
      const result = await next({ ctx: { ...ctx, actor } })
      if (!result.ok || actor.role !== 'viewer') return result
      const data =
        type === 'subscription'
          ? eachWithoutHiddenSettings(result.data as AsyncIterable<unknown>)
          : withoutHiddenSettings(result.data)
      return { ...result, data }
    })
    .use(storable)

/** Reads. */
export const viewerProcedure = requiring('viewer')
/** Changes. */
export const operatorProcedure = requiring('operator')
/** Who belongs to the installation: hosts. */
export const adminProcedure = requiring('admin')
