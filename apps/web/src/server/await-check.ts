import { fault } from '@floe/domain'
import { Bell } from './bell'
import type { Context } from './context'

/** How long somebody waits for a check at most: in a moment he knows what he asked, or why he does not. */
export type CheckTimes = {
  /** A controller takes a check within milliseconds; one that has not after this is not there. */
  takenMs: number
  /** A check takes a second; a host that is busy may take longer. */
  answeredMs: number
}
export const CHECK_TIMES: CheckTimes = { takenMs: 6_000, answeredMs: 20_000 }

/** Looked at this often also when no notification came. */
const LOOK_MS = 500

/**
 * Waits until a check that was asked for is answered. Throws `CODE.check_not_taken` (no controller) or
 * `CODE.check_running` (asked again, it is the same one that is waited for).
 */
export async function awaitCheck<Answer>(
  ctx: Context,
  checkId: string,
  check: {
    /** "the settings" */
    of: string
    code: string
    /** Why it may take long. */
    detail: string
    read: () => Promise<{ taken: boolean; answer: Answer | null }>
  },
): Promise<Answer> {
  const begun = performance.now()
  const { takenMs, answeredMs } = ctx.ports.checkTimes
  const answered = new Bell()
  const stop = ctx.ports.changes.onCheck(checkId, () => answered.ring())
  try {
    for (;;) {
      answered.takeRing()
      const { taken, answer } = await check.read()
      if (answer !== null) return answer
      const waited = performance.now() - begun
      if (!taken && waited > takenMs)
        throw fault(`${check.code}.check_not_taken`, `nobody carries out the check of ${check.of}`, {
          detail: `The controller has not taken it within ${takenMs / 1_000} s.`,
          hint: 'Look whether the controller runs ("./floe status"), then try again.',
        })
      if (waited > answeredMs)
        throw fault(`${check.code}.check_running`, `the check of ${check.of} has not ended`, {
          detail: `It has been running for ${Math.round(waited / 1_000)} s; ${check.detail}.`,
          hint: 'Try again: it goes on, and the next try waits for the same answer.',
        })
      await answered.wait(Math.min(LOOK_MS, answeredMs - waited + 1))
    }
  } finally {
    stop()
  }
}
