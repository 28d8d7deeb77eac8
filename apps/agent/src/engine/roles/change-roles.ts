import { FaultError, fault } from '@floe/domain'
import pg from 'pg'
import { withRolesLocked } from '../cluster/member-roles'
import { refuseStandby } from '../cluster/primary-session'
import type { Instance } from '../instance'
import { sqlState } from '../process/connection'
import { answered } from '../process/patience'
import { withRoleSession } from './role-session'

/** Of each statement. A commit that waits for a standby for longer is there on the primary, and PostgreSQL warns of that. */
const STATEMENT_MS = 30_000
/** Where the engine lets no commit go before a standby has it, all of a change may take so long. */
const CHANGE_MS = 60_000

/**
 * Changes roles in one transaction on a primary, in which nobody else changes any. `settled` says whether a run before, or a
 * commit that was not answered, has done it; what it goes by must be noted durably before `change` returns.
 */
export async function changeRoles(
  instance: Instance,
  log: (text: string) => void,
  {
    settled,
    change,
  }: { settled: (client: pg.Client) => Promise<boolean>; change: (client: pg.Client) => Promise<void> },
): Promise<void> {
  const once = (lost: { error: unknown } | null) =>
    withRoleSession(
      instance.address,
      async (client) => {
        await refuseStandby(instance, client)
        const changed = withRolesLocked(client, async () => {
          if (await settled(client)) return
          if (lost) throw lost.error
          await change(client)
        })
        await answered(changed, CHANGE_MS).catch((error: unknown) => {
          if (!(error instanceof FaultError) || error.fault.code !== 'instance.no_answer') throw error
          throw fault('role.unconfirmed', 'the change of the role has not ended', {
            detail: `It has taken more than ${CHANGE_MS / 1_000} s: its commit may wait for synchronous standbys.`,
            hint: 'It may be in force: list the roles before you order it once more.',
          })
        })
      },
      { statementMs: STATEMENT_MS, warned: log },
    )
  try {
    await once(null)
  } catch (error) {
    const state = sqlState(error)
    if (error instanceof FaultError) throw error
    if (state !== null && !state.startsWith('57P')) throw roleFault(error)
    // without the engine's word it may have been committed
    await once({ error: roleFault(error) })
  }
}

/** What the engine says of a command on roles names roles and objects: whatever somebody gave them as names, on lines of its own. */
const TEXT_MAX = 2_000

const codes: Record<string, string> = {
  '25006': 'instance.is_standby',
  '2BP01': 'role.has_dependents',
  '42704': 'role.not_found',
  '42710': 'role.name_taken',
}

function roleFault(error: unknown): FaultError {
  const state = sqlState(error)
  const { message, detail, hint } = error as { message: string; detail?: string; hint?: string }
  const cut = (text: string) => text.slice(0, TEXT_MAX).replace(/[^\P{Cc}\n]/gu, '\ufffd')
  if (state === null)
    return fault('instance.no_connection', 'the connection to the instance ended', {
      detail: cut(message),
      hint: 'Its log says why.',
      cause: error,
    })
  return fault(codes[state] ?? 'role.refused', cut(message), {
    ...(detail ? { detail: cut(detail) } : {}),
    ...(hint ? { hint: cut(hint) } : {}),
    cause: error,
  })
}

/** What PostgreSQL's documentation advises before a role is dropped; a person does it, in each database that is named. */
export const dependentsHint = (role: string): string => {
  const name = pg.escapeIdentifier(role)
  return `In each of these databases, give its objects to another role: REASSIGN OWNED BY ${name} TO …; then take its privileges away: DROP OWNED BY ${name}.`
}
