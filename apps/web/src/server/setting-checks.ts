import {
  askSettingCheck,
  insertAuditEvent,
  inTransaction,
  readSettingCheck,
  type SettingCheckAnswer,
  type SettingCheckTarget,
} from '@floe/db'
import { fault } from '@floe/domain'
import { auditClass } from '@floe/operations/submit'
import { Bell } from './bell'
import type { Context } from './context'
import { requireProgramRight } from './program-settings'
import type { Account } from './routers/account/account.types'

/** How long somebody waits for a check at most: in a moment he knows what changes do, or why he does not. */
export type SettingCheckTimes = {
  /** A controller takes a check within milliseconds; one that has not after this is not there. */
  takenMs: number
  /** A check takes a second; a host that is busy starting other engines may take longer. */
  answeredMs: number
}
export const SETTING_CHECK_TIMES: SettingCheckTimes = { takenMs: 6_000, answeredMs: 20_000 }

/** Looked at this often also when no notification came. */
const LOOK_MS = 500

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

async function answerOf(ctx: Context, checkId: string): Promise<SettingCheckAnswer[]> {
  const begun = performance.now()
  const { takenMs, answeredMs } = ctx.ports.settingCheckTimes
  const answered = new Bell()
  const stop = ctx.ports.changes.onSettingCheck(checkId, () => answered.ring())
  try {
    for (;;) {
      answered.takeRing()
      const check = await readSettingCheck(ctx.ports.database.pool, checkId)
      if (check?.answers) return check.answers
      const waited = performance.now() - begun
      if (!check?.taken && waited > takenMs)
        throw fault('setting.check_not_taken', 'nobody carries out the check of the settings', {
          detail: `The controller has not taken it within ${takenMs / 1_000} s.`,
          hint: 'Look whether the controller runs ("./floe status"), then try again.',
        })
      if (waited > answeredMs)
        throw fault('setting.check_running', 'the check of the settings has not ended', {
          detail: `It has been running for ${Math.round(waited / 1_000)} s; the host may be starting other engines.`,
          hint: 'Try again: it goes on, and the next try waits for the same answer.',
        })
      await answered.wait(Math.min(LOOK_MS, answeredMs - waited + 1))
    }
  } finally {
    stop()
  }
}
