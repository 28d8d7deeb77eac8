import { insertAuditEvent } from '@floe/db'
import type { Fault } from '@floe/domain'
import type { Context } from './context'
import { log } from './log'

/** Rows that requests without any session may cause in a minute, so that nobody fills the database from outside. */
const ANONYMOUS_PER_MINUTE = 60
let minute = 0
let anonymous = 0

/** Writes the audit row of a denial. Reads without a session are only an expired session and leave none. */
export async function auditDenial(
  ctx: Context,
  action: string,
  type: string,
  fault: Fault,
  getRawInput: () => Promise<unknown>,
) {
  if (!ctx.actor) {
    if (type !== 'mutation') return
    const now = Math.floor(Date.now() / 60_000)
    if (now !== minute) {
      minute = now
      anonymous = 0
    }
    if (++anonymous > ANONYMOUS_PER_MINUTE) return
  }
  const input = (await getRawInput().catch(() => undefined)) as Record<string, unknown> | undefined
  const objectId = [input?.instanceId, input?.operationId, input?.incidentId].find(
    (id) => typeof id === 'string',
  ) as string | undefined
  const [noun] = action.split('.')
  try {
    await insertAuditEvent(ctx.ports.database.pool, {
      actor: ctx.actor ?? { id: 'anonymous', name: 'anonymous' },
      action,
      outcome: 'denied',
      objectKind: noun,
      objectId: objectId?.slice(0, 100),
      detail: { code: fault.code },
      ipAddress: ctx.ipAddress,
    })
  } catch (err) {
    // the denial holds whether or not it can be written down
    log.error({ event: 'audit.failed', action, err })
  }
}
