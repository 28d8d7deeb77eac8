import { changedLimits, FaultError, limitChangeWords, noLimits, whyNoLimits, withLimits } from '@floe/domain'
import type { TaskBody } from '../runner/task'

/** Changes limits, at once where the instance runs, and for every start. What cannot be set leaves the earlier ones. */
export const limitInstance: TaskBody<'limit-instance'> = async (task, context) => {
  const { registry } = context
  const instance = context.instances.get(task.instanceId)
  const before = instance.registered.limits ?? noLimits
  const limits = withLimits(before, task.changes)
  const refusal = whyNoLimits(limits)
  if (refusal) throw new FaultError(refusal)
  await instance.limiter.change(
    () => registry.update(task.instanceId, { limits }),
    () => registry.update(task.instanceId, { limits: before }),
  )
  for (const change of changedLimits(before, limits)) context.log(limitChangeWords(change))
  const observed = instance.limiter.observed()
  for (const { why } of observed.gaps) context.log(why)
  return { limits, observed }
}
