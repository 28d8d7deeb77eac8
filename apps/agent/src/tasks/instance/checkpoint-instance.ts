import { withSecondCheckpoint } from '../../engine/page-repair/second-checkpoint'
import type { TaskBody } from '../runner/task'

/** Writes a checkpoint now, so that the one at shutdown, which clients wait for, has little left to write. */
export const checkpointInstance: TaskBody<'checkpoint-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const begun = performance.now()
  await instance.connect(
    (client) => withSecondCheckpoint(() => client.query('checkpoint'), context.log),
    3_600_000,
  )
  const checkpointMs = performance.now() - begun
  context.log(`checkpoint after ${Math.round(checkpointMs)} ms`)
  return { checkpointMs }
}
