import { type AuditBreak, verifyAuditChain } from '@floe/db'
import { adminProcedure } from '../../procedures'
import { AuditVerified, AuditVerifyInput } from './audit.types'

/** Computes the chain of audit rows again, and names the first row that differs or is missing. */
export const verify = adminProcedure
  .input(AuditVerifyInput)
  .output(AuditVerified)
  .query(async ({ ctx, input }) => {
    const { broken, known, rows, anchorId, headId, headHash } = await verifyAuditChain(
      ctx.ports.database.pool,
      input.head,
    )
    return {
      rows,
      anchorId,
      headId,
      headHash,
      broken: broken && { ...broken, at: broken.at?.getTime() ?? null, message: messageOf(broken) },
      ...(known === undefined
        ? {}
        : { known: known && { eventId: known.eventId, at: known.at?.getTime() ?? null } }),
    }
  })

function messageOf({ kind, eventId, lastId }: AuditBreak): string {
  if (kind === 'changed') return `audit row ${eventId} was changed after it was written`
  if (kind === 'replaced') return `audit row ${eventId} does not continue the row before it`
  return eventId === lastId
    ? `audit row ${eventId} is missing`
    : `audit rows ${eventId} to ${lastId} are missing`
}
