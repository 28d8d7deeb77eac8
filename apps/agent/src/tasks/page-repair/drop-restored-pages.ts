import { dropRestoredPages } from '../../engine/copies/restored-pages'
import type { TaskBody } from '../runner/task'

/** Removes what a restored backup gave. */
export const dropRestored: TaskBody<'drop-restored-pages'> = async ({ instanceId }, context) => {
  await dropRestoredPages(context.instances.get(instanceId))
  return {}
}
