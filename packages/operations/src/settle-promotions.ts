import { along, type ClusterObserved, type PromotionBegun, reportedEnd } from '@floe/domain'
import { isRefuted } from './promotion-record'
import type { StepContext } from './step'

/**
 * Promotions that cannot take place any more: their tasks were never begun, or ended before the engine was asked. One that
 * succeeded took place, whatever an older report says, and one that failed may still be on its way in the engine. Whether
 * the member was promoted by another one is a question that what it holds answers.
 */
export async function promotionsOver(
  context: Pick<StepContext, 'agentOf'>,
  cluster: ClusterObserved,
): Promise<PromotionBegun[]> {
  const over = (cluster.holdings?.promotions ?? []).map(async (promotion) => {
    const member = cluster.members.find((m) => m.instanceId === promotion.instanceId)
    if (member?.hostState !== 'online') return []
    const { operationId, step } = promotion
    // any attempt before the last one may have asked the engine
    const attempts = Array.from({ length: promotion.attempt }, (_, i) => i + 1)
    try {
      const agent = context.agentOf(member.hostId)
      const tasks = await Promise.all(
        attempts.map((attempt) => agent.cancelTask({ operationId, step, attempt })),
      )
      const neverAsked = tasks.every(
        ({ state, fault }) => state === 'cancelled' || (fault && isRefuted(fault)),
      )
      return neverAsked ? [promotion] : []
    } catch {
      return []
    }
  })
  return (await Promise.all(over)).flat()
}

/** Of those the ones that did not take place, by what their members were last seen to be. */
export function promotionsRefuted(
  cluster: ClusterObserved,
  over: readonly PromotionBegun[],
): PromotionBegun[] {
  return over.filter(({ instanceId }) => {
    const member = cluster.members.find((m) => m.instanceId === instanceId)
    const on = along(reportedEnd(member?.replication ?? null), cluster.holdings?.timeline ?? null)
    return member?.state === 'running' && member.role === 'standby' && on?.left === false
  })
}
