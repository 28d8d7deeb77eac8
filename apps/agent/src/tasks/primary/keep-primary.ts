import { fault } from '@floe/domain'
import { keepPrimary } from '../../engine/cluster/keep-primary'
import type { TaskBody } from '../runner/task'

/** The agent keeps who the primary is, and whether the member is held back, before the console records that it is. */
export const keepPrimaryTold: TaskBody<'keep-primary'> = async (task, context) => {
  if (!keepPrimary(context.registry, task.instanceId, task.primary))
    throw fault('primary.newer_known', 'the agent knows a newer primary', {
      detail: `It knows timeline ${context.registry.get(task.instanceId).primaryKnown?.timeline}; the order names ${task.primary.timeline}.`,
      hint: 'The control database may be older than the cluster: read the open incidents.',
    })
  context.log(
    task.primary.heldBack
      ? 'it starts as a primary only by an order of the console'
      : 'it is no longer held back',
  )
  return {}
}
