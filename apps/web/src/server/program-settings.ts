import { fault, programSettingsOf } from '@floe/domain'
import { auditClass } from '@floe/operations/submit'
import { TRPCError } from '@trpc/server'
import type { Context } from './context'
import { auditDenial } from './denials'
import { type Account, AccountRole } from './routers/account/account.types'

const mayRunPrograms = (role: AccountRole) =>
  AccountRole.options.indexOf(role) >= AccountRole.options.indexOf('admin')

/**
 * Settings that run programs or load libraries give the person who sets them the rights of the instance's
 * operating-system user: admins and owners only. Throws `setting.runs_programs`, with an audit row of the denial.
 */
export async function requireProgramRight(
  ctx: Context & { actor: Account },
  names: readonly string[],
  about: { action: string; objectId?: string | undefined },
): Promise<void> {
  const programs = programSettingsOf(names)
  if (programs.length === 0 || mayRunPrograms(ctx.actor.role)) return
  const denial = fault(
    'setting.runs_programs',
    `role "${ctx.actor.role}" may not change setting "${programs[0]}"`,
    {
      detail: `${programs.length === 1 ? 'It runs' : `${programs.join(', ')} run`} programs or ${programs.length === 1 ? 'loads' : 'load'} libraries on the host, as the instance’s operating-system user. That needs role "admin".`,
      hint: 'Ask an owner or admin of the organisation to change it.',
    },
  )
  const input = async () => ({ instanceId: about.objectId })
  await auditDenial(ctx, about.action, 'mutation', denial.fault, input, auditClass(programs))
  throw new TRPCError({ code: 'FORBIDDEN', message: denial.message, cause: denial })
}
