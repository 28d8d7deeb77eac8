import { findSettingRevision, listSettingRevisions } from '@floe/db'
import { fault } from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { changesTo, rolledBackTo } from './revisions'
import { SettingRollBackInput } from './roll-back.types'

/**
 * Goes back to an earlier revision of the settings: the changes that lead there are ordered like any others, so they are
 * checked, confirmed and recorded. Throws `setting.revision_not_found` or `setting.revision_current`.
 */
export const rollBack = operatorProcedure
  .input(SettingRollBackInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { instanceId, revisionId, reason, idempotencyKey } }) => {
    const { pool } = ctx.ports.database
    const wayBack = async () => {
      const wanted = await findSettingRevision(pool, instanceId, revisionId)
      if (!wanted)
        throw fault(
          'setting.revision_not_found',
          `the instance has no revision ${revisionId} of its settings`,
          {
            hint: 'List them with setting.revisions.',
          },
        )
      const [holding] = await listSettingRevisions(pool, { instanceId, limit: 1 })
      const changes = changesTo(holding?.managed ?? {}, wanted.managed)
      if (changes.length === 0)
        throw fault('setting.revision_current', 'the settings are as they were in that revision', {
          detail: 'Going back to it would change nothing.',
        })
      return { instanceId, changes, reason: reason || rolledBackTo(wanted.at), revisionId }
    }
    return submit(ctx, {
      kind: 'change-settings',
      // asked again after it was done, there is nothing left to change
      input: wayBack,
      asked: { instanceId, revisionId, ...(reason ? { reason } : {}) },
      idempotencyKey,
    })
  })
