import { type OperationKind, operationRecord } from '@floe/domain'
import { TRPCError } from '@trpc/server'
import type { Context } from './context'
import { auditDenial } from './denials'
import { roleTooLow } from './procedures'
import { type Account, AccountRole } from './routers/account/account.types'

/**
 * Some kinds of operations, or some inputs, are admins' and owners' only (`role` of their record), also where they are
 * retried. Throws `session.role_too_low`, with an audit row of the denial.
 */
export async function requireOperationRole(
  ctx: Context & { actor: Account },
  { kind, input }: { kind: OperationKind; input: unknown },
  about: { action: string; objectId?: string | undefined },
): Promise<void> {
  const { role: needed } = operationRecord(kind)
  const role = typeof needed === 'function' ? needed(input) : needed
  const rank = (of: AccountRole) => AccountRole.options.indexOf(of)
  if (role === undefined || rank(ctx.actor.role) >= rank(role)) return
  const denial = roleTooLow(ctx.actor.role, role)
  await auditDenial(ctx, about.action, 'mutation', denial.fault, async () => ({ instanceId: about.objectId }))
  throw new TRPCError({ code: 'FORBIDDEN', message: denial.message, cause: denial })
}
