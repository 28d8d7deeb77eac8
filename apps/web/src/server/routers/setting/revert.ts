import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { SettingResolveInput } from './resolve.types'

/** Puts back what Floe left: edited files and what ALTER SYSTEM set. */
export const revert = operatorProcedure
  .input(SettingResolveInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'resolve-drift', input: { ...input, how: 'revert' }, idempotencyKey }),
  )
