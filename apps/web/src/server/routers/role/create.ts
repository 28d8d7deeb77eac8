import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { RoleCreateInput } from './role.types'

/** Orders a database role. A password stays with the caller, who sends its verifier. */
export const create = operatorProcedure
  .input(RoleCreateInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'create-database-role', input, idempotencyKey }),
  )
