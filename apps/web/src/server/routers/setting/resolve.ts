import { showInstance } from '@floe/db'
import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { SettingResolveInput } from './setting.types'

const resolve = (how: 'adopt' | 'revert') =>
  operatorProcedure
    .input(SettingResolveInput)
    .output(OperationRef)
    .mutation(async ({ ctx, input: { idempotencyKey, ...input } }) => {
      const instance = await showInstance(ctx.ports.database.pool, input.instanceId)
      return submit(ctx, {
        kind: 'resolve-drift',
        input: { ...input, how },
        idempotencyKey,
        settings: instance?.settingDrift.map((d) => d.name),
      })
    })

/** Adopts configuration drift: what ALTER SYSTEM set moves into Floe’s file, and the history names who adopted it. */
export const adopt = resolve('adopt')
/** Reverts configuration drift: edits of files and what ALTER SYSTEM set. */
export const revert = resolve('revert')
