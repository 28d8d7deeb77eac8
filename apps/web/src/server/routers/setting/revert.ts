import { showInstance } from '@floe/db'
import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { SettingResolveInput } from './resolve.types'

/** Puts back what Floe left: edited files and what ALTER SYSTEM set. */
export const revert = operatorProcedure
  .input(SettingResolveInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input: { idempotencyKey, ...input } }) => {
    const instance = await showInstance(ctx.ports.database.pool, input.instanceId)
    return submit(ctx, {
      kind: 'resolve-drift',
      input: { ...input, how: 'revert' },
      idempotencyKey,
      settings: instance?.settingDrift.map((d) => d.name),
    })
  })
