import type { InstanceId } from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { StandbyRejoinInput, StandbyRemoveInput } from './standby.types'

/** Orders the end of a standby: its slot, its role, its files; without its host where that was typed. Refused unless its name was. */
export const remove = operatorProcedure
  .input(StandbyRemoveInput)
  .output(OperationRef)
  .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
    submit(ctx, { kind: 'remove-standby', input, idempotencyKey }),
  )

/** Without the word that keeps nothing, as an earlier version asked it: a key that was used then still answers. */
const rejoinInput = ({ instanceId, discardOwn }: { instanceId: InstanceId; discardOwn: boolean }) => ({
  instanceId,
  ...(discardOwn ? { discardOwn } : {}),
})

const back = (method: 'rewind' | 'clone') =>
  operatorProcedure
    .input(StandbyRejoinInput)
    .output(OperationRef)
    .mutation(({ ctx, input: { idempotencyKey, ...input } }) =>
      submit(ctx, { kind: 'rejoin-standby', input: { ...rejoinInput(input), method }, idempotencyKey }),
    )

/** Orders a fenced or broken member back as a standby: by pg_rewind where that is allowed, else by a new copy. */
export const rejoin = back('rewind')
/** Orders a new copy of the primary in a standby's place. */
export const reclone = back('clone')
