import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { InstanceStartInput } from './start.types'

/** Orders that clients on other hosts come in over TLS only, on every member of the instance's cluster. */
export const requireTls = operatorProcedure
  .input(InstanceStartInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'require-tls', input, idempotencyKey }),
  )
