import { showInstance } from '@floe/db'
import { fault } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { SettingDrift, SettingDriftInput } from './drift.types'

/** What was changed past Floe, as the instance's agent last told; at most some seconds after the change. */
export const drift = viewerProcedure
  .input(SettingDriftInput)
  .output(SettingDrift)
  .query(async ({ ctx, input }) => {
    const instance = await showInstance(ctx.ports.database.pool, input.instanceId)
    if (!instance) throw fault('instance.not_found', `instance "${input.instanceId}" does not exist`)
    return { drift: instance.settingDrift, observedAt: instance.observedAt?.getTime() ?? null }
  })
