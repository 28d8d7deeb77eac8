import { fault } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import { readControlFile } from '../../engine/directory/control-file'
import { requireRunning } from '../../engine/process/require-running'
import type { TaskBody } from '../runner/task'

/** A standby that is further behind than this has to be looked at by a person. */
const REPLAY_BOUND_MS = 600_000
/** A restartpoint writes all that is dirty. */
const RESTARTPOINT_BOUND_MS = 600_000

/**
 * Waits for a standby's control file, which keeps what the primary's WAL asks for, and then moves the point from which
 * a crash would begin to replay past the primary's restart: WAL from before it asks for the former values.
 */
export const awaitSettings: TaskBody<'await-settings'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  const read = async () =>
    (await readControlFile(instance.enginePrefix, instance.layout.dataDirectory, instance.user))?.asked
  const lacking = (asked: Record<string, number>) =>
    Object.entries(task.atMost).filter(([name, value]) => (asked[name] ?? 0) > value)
  const asked = await waitFor(
    async () => {
      const seen = await read()
      if (!seen) return null
      const [first] = lacking(seen)
      if (!first) return seen
      context.say(
        `replaying: the primary’s WAL still asks for ${first[0]} = ${seen[first[0] as keyof typeof seen]}`,
      )
      return null
    },
    { boundMs: REPLAY_BOUND_MS, everyMs: 250, signal: context.signal },
  )
  if (asked === null)
    throw fault('standby.behind', 'the standby has not replayed the primary’s change within 10 minutes', {
      detail: 'With smaller values than its primary it would stop replaying, so they were not written.',
      hint: 'Check that it streams and that replay is not paused.',
    })
  context.signal.throwIfAborted()
  await instance.connect((client) => client.query('checkpoint'), RESTARTPOINT_BOUND_MS)
  context.log(`the primary’s WAL asks for no more than ${words(task.atMost)}`)
  return { asked }
}

const words = (values: Record<string, number>) =>
  Object.entries(values)
    .map(([name, value]) => `${name} = ${value}`)
    .join(', ')
