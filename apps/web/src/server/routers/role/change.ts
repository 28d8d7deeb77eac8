import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { RoleChangeInput } from './role.types'

/** Orders other attributes, memberships or another password of a database role; what is left out stays. */
export const change = operatorProcedure
  .input(RoleChangeInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'change-database-role', input, idempotencyKey }),
  )
