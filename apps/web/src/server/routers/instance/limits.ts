import { listLimitChanges, listLimitsOfHost, showHost, showInstance } from '@floe/db'
import { fault, hasMemoryHigh, type OperationId, sumLimits } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { InstanceLimitsInput, InstanceLimitsView } from './instance.types'

/**
 * How much of its host an instance may use, what of that is in force, and what all instances of the host may use together.
 * Throws `instance.not_found`.
 */
export const limits = viewerProcedure
  .input(InstanceLimitsInput)
  .output(InstanceLimitsView)
  .query(async ({ ctx, input: { instanceId } }) => {
    const { pool } = ctx.ports.database
    const instance = await showInstance(pool, instanceId)
    if (!instance || instance.deletedAt)
      throw fault('instance.not_found', `instance "${instanceId}" does not exist`)
    const { hostId, name } = instance.host
    const [host, all, history] = await Promise.all([
      showHost(pool, hostId),
      listLimitsOfHost(pool, hostId),
      listLimitChanges(pool, instanceId),
    ])
    const facts = host?.facts ?? null
    return {
      limits: instance.limits,
      observed: instance.state === 'unknown' ? null : instance.limitsObserved,
      host: facts && { name, cpus: facts.cpus, memoryBytes: facts.memoryBytes },
      sums: facts
        ? sumLimits(
            all.map((one) => one.limits),
            { ...facts, memoryHigh: hasMemoryHigh(all.map((one) => one.driver)) },
          )
        : [],
      history: history.map((change) => ({
        ...change,
        at: change.at.getTime(),
        operationId: change.operationId as OperationId,
      })),
    }
  })
