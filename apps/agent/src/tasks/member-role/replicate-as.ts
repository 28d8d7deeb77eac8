import type { Upstream } from '@floe/agent-contract'
import { fault, toFault } from '@floe/domain'
import { z } from 'zod'
import { readClusterSettings, writeClusterSettings } from '../../engine/cluster/member-files'
import { NEW_ROLE_BOUND_MS, waitUntilStreaming } from '../../engine/cluster/streaming'
import { writeUpstream } from '../../engine/cluster/upstream'
import type { Instance } from '../../engine/instance'
import { reload } from '../../engine/process/reload'
import { isThere } from '../../host/tree'
import type { TaskBody, TaskContext } from '../runner/task'

const Former = z.object({ conninfo: z.string() })

/**
 * Has a member come as another role. Its engine keeps running: only the WAL receiver restarts. What it followed by before is
 * noted first, so that a run after a kill finds it.
 */
export const replicateAs: TaskBody<'replicate-as'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { upstream, former } = task
  const conninfo = readClusterSettings(instance.layout).get('primary_conninfo')
  // a primary, and a standby that is to receive nothing now, follow as what they are told when they next do
  if (!isThere(instance.layout.standbySignal) || !conninfo) {
    noteRole(task.instanceId, upstream.role, context)
    return { streaming: false }
  }
  const noted = Former.safeParse(context.note.read())
  const before = noted.success ? noted.data : { conninfo }
  if (!noted.success) context.note.write(before)
  writeUpstream(instance, upstream, context)
  await instance.look()
  if (!instance.postmaster) {
    context.log(`it is not running; it comes as "${upstream.role}" when it starts`)
    return { streaming: false }
  }
  try {
    await instance.connect((client) => reload(instance, client))
    await waitUntilStreaming(instance, upstream, context, NEW_ROLE_BOUND_MS)
    return { streaming: true }
  } catch (error) {
    await goBack(instance, { ...upstream, role: former }, before.conninfo, context)
    context.signal.throwIfAborted()
    const { message, detail } = toFault(error)
    throw fault(
      'standby.role_refused',
      `instance "${instance.registered.name}" does not stream as its new role`,
      {
        detail: `It goes on as role "${former}". ${[message, detail].filter(Boolean).join(': ')}`,
        hint: `Its log is in directory "${instance.layout.logDirectory}".`,
      },
    )
  }
}

/** The role that the agent reports, and that pg_hba.conf of the other members lets in. */
const noteRole = (instanceId: string, role: string, { registry }: Pick<TaskContext, 'registry'>) =>
  registry.update(instanceId, { followsAs: role })

async function goBack(
  instance: Instance,
  upstream: Upstream,
  conninfo: string,
  context: TaskContext,
): Promise<void> {
  noteRole(instance.instanceId, upstream.role, context)
  const settings = readClusterSettings(instance.layout).set('primary_conninfo', conninfo)
  writeClusterSettings(instance.layout, settings, instance.user)
  try {
    await instance.connect((client) => reload(instance, client))
    if (context.signal.aborted) return
    await waitUntilStreaming(instance, upstream, context, NEW_ROLE_BOUND_MS)
  } catch (error) {
    context.log(`as role "${upstream.role}" it does not stream either: ${toFault(error).message}`)
  }
}
