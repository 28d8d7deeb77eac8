import { insertAuditEvent, inTransaction, type RecordKind, setRecordRetention, setRetention } from '@floe/db'
import type { StoredStep } from '@floe/telemetry'
import { TRPCError } from '@trpc/server'
import { auditDenial } from '../../denials'
import { adminProcedure, roleTooLow } from '../../procedures'
import { RetentionSetInput } from './retention.types'

const steps: Record<string, StoredStep> = { 'sample-1s': 1, 'sample-10s': 10, 'sample-1m': 60 }

/**
 * Changes how long a kind is kept. What is too old then is deleted within minutes, and does not come back. Audit rows are
 * also about what admins do: only the owner says how long they are kept.
 */
export const set = adminProcedure
  .input(RetentionSetInput)
  .output(RetentionSetInput)
  .mutation(async ({ ctx, input }) => {
    if (input.kind === 'audit' && ctx.actor.role !== 'owner') {
      const denial = roleTooLow(ctx.actor.role, 'owner')
      await auditDenial(ctx, 'retention.set', 'mutation', denial.fault, async () => input)
      throw new TRPCError({ code: 'FORBIDDEN', message: denial.message, cause: denial })
    }
    await inTransaction(ctx.ports.database.pool, async (tx) => {
      const step = steps[input.kind]
      if (step) await setRetention(tx, step, input.keepSeconds)
      else await setRecordRetention(tx, input.kind as RecordKind, input.keepSeconds)
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        action: 'retention.set',
        outcome: 'allowed',
        objectKind: 'retention',
        objectId: input.kind,
        detail: { keepSeconds: input.keepSeconds },
        ipAddress: ctx.ipAddress,
      })
    })
    return input
  })
