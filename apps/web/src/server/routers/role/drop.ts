import { fault } from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { RoleDropInput } from './role.types'

/** Orders that a database role is dropped. Throws `role.name_mismatch`. */
export const drop = operatorProcedure
  .input(RoleDropInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, confirmRole, ...input } }) => {
    if (confirmRole !== input.role)
      throw fault('role.name_mismatch', `"${confirmRole}" is not the name of this role`, {
        hint: `Type "${input.role}" to confirm.`,
      })
    return submit(ctx, { kind: 'drop-database-role', input, idempotencyKey })
  })
