import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { SettingSetInput } from './set.types'

/** Orders changes of settings: checked by the instance's own binary, written, reloaded, read back. */
export const set = operatorProcedure
  .input(SettingSetInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'change-settings', input, idempotencyKey }),
  )
