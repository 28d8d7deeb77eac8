import { findSettingState, listSettingStates } from '@floe/db'
import { fault } from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { SettingRollBackInput } from './roll-back.types'
import { changesTo, rolledBackTo } from './states'

/**
 * Goes back to an earlier state of the settings: the changes that lead there are ordered like any others, so they are
 * checked, confirmed and recorded. Throws `setting.state_not_found` or `setting.state_holds`.
 */
export const rollBack = operatorProcedure
  .input(SettingRollBackInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { instanceId, stateId, reason, idempotencyKey } }) => {
    const { pool } = ctx.ports.database
    const wayBack = async () => {
      const wanted = await findSettingState(pool, instanceId, stateId)
      if (!wanted)
        throw fault('setting.state_not_found', `the instance has no state ${stateId} of its settings`, {
          hint: 'List them with setting.states.',
        })
      const [holding] = await listSettingStates(pool, { instanceId, limit: 1 })
      const changes = changesTo(holding?.managed ?? {}, wanted.managed)
      if (changes.length === 0)
        throw fault('setting.state_holds', 'the settings are as they were in that state', {
          detail: 'Going back to it would change nothing.',
        })
      return { instanceId, changes, reason: reason || rolledBackTo(wanted.at), stateId }
    }
    return submit(ctx, {
      kind: 'change-settings',
      // asked again after it was done, there is nothing left to change
      input: wayBack,
      asked: { instanceId, stateId, ...(reason ? { reason } : {}) },
      idempotencyKey,
    })
  })
