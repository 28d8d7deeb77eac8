import { showInstance } from '@floe/db'
import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { SettingResolveInput } from './resolve.types'

/** Keeps what was changed past Floe: what ALTER SYSTEM set moves into Floe’s file, and the history names who adopted it. */
export const adopt = operatorProcedure
  .input(SettingResolveInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input: { idempotencyKey, ...input } }) => {
    const instance = await showInstance(ctx.ports.database.pool, input.instanceId)
    return submit(ctx, {
      kind: 'resolve-drift',
      input: { ...input, how: 'adopt' },
      idempotencyKey,
      settings: instance?.settingDrift.map((d) => d.name),
    })
  })
