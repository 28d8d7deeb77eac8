import {
  askSettingCheck,
  insertAuditEvent,
  inTransaction,
  readSettingCheck,
  type SettingCheckAnswer,
  type SettingCheckTarget,
} from '@floe/db'
import { auditClass } from '@floe/operations/submit'
import { awaitCheck } from './await-check'
import type { Context } from './context'
import { requireProgramRight } from './program-settings'
import type { Account } from './routers/account/account.types'

/**
 * Has the controller find out what changes of settings would do: a task on each target's host, which starts an engine, and
 * so an audit row. The same check asked twice in a moment is one. Throws `setting.runs_programs`,
 * `setting.check_not_taken` (no controller) or `setting.check_running` (asked again, it is the same one that is waited for).
 */
export async function checkSettings(
  ctx: Context & { actor: Account },
  targets: SettingCheckTarget[],
  about: { action: string; objectKind: string; objectId: string },
): Promise<SettingCheckAnswer[]> {
  const names = [...new Set(targets.flatMap((t) => t.changes.map((c) => c.name)))]
  await requireProgramRight(ctx, names, about)
  const { pool } = ctx.ports.database
  const checkId = await inTransaction(pool, async (tx) => {
    const asked = await askSettingCheck(tx, { targets, actor: ctx.actor })
    if (asked.created)
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        outcome: 'allowed',
        ...about,
        // values are in the row of the change itself, should there be one
        detail: { checkId: asked.checkId, settings: names, ...auditClass(names) },
        ipAddress: ctx.ipAddress,
      })
    return asked.checkId
  })
  return answerOf(ctx, checkId)
}

const answerOf = (ctx: Context, checkId: string): Promise<SettingCheckAnswer[]> =>
  awaitCheck(ctx, checkId, {
    of: 'the settings',
    code: 'setting',
    detail: 'the host may be starting other engines',
    read: async () => {
      const check = await readSettingCheck(ctx.ports.database.pool, checkId)
      return { taken: check?.taken ?? false, answer: check?.answers ?? null }
    },
  })
