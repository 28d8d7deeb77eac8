import { insertAuditEvent, inTransaction, withdrawEnrolment } from '@floe/db'
import { z } from 'zod'
import { adminProcedure } from '../../procedures'
import { EnrolmentWithdrawInput } from './host.types'

/** Makes a token void that was not used yet. Throws `enrolment.not_found`. */
export const withdraw = adminProcedure
  .input(EnrolmentWithdrawInput)
  .output(z.object({ enrolmentId: z.uuid() }))
  .mutation(async ({ ctx, input: { enrolmentId } }) => {
    await inTransaction(ctx.ports.database.pool, async (tx) => {
      const name = await withdrawEnrolment(tx, enrolmentId)
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        action: 'host.withdraw',
        outcome: 'allowed',
        objectKind: 'enrolment',
        objectId: enrolmentId,
        detail: { name },
        ipAddress: ctx.ipAddress,
      })
    })
    return { enrolmentId }
  })
