import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { readScope } from './scope'
import { SettingRollBackInput } from './setting.types'
import { wayBack } from './way-back'

/**
 * Rolls back to an earlier revision of the settings, across a cluster on all members: the changes that lead there are
 * ordered like any others, so they are checked, confirmed and recorded. Throws `setting.revision_not_found` or
 * `setting.revision_current`.
 */
export const rollBack = operatorProcedure
  .input(SettingRollBackInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { scope, revisionId, reason, idempotencyKey } }) => {
    const { pool } = ctx.ports.database
    const asked = { ...scope, revisionId, ...(reason ? { reason } : {}) }
    const back = async () => {
      const named = await readScope(pool, scope)
      const { members, because } = await wayBack(pool, scope, named, revisionId)
      return { members, instanceId: named.leaderId, revisionId, reason: reason || because }
    }
    // asked again after it was done, there is nothing left to change: the way back is worked out only for a new key
    if ('instanceId' in scope)
      return submit(ctx, {
        kind: 'change-settings',
        input: async () => {
          const { members, ...more } = await back()
          return { ...more, changes: members.flatMap((m) => m.changes) }
        },
        asked,
        idempotencyKey,
      })
    return submit(ctx, {
      kind: 'change-cluster-settings',
      input: async () => ({ ...(await back()), ...scope, restart: true }),
      asked,
      idempotencyKey,
    })
  })
