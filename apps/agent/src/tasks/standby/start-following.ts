import type { Upstream } from '@floe/agent-contract'
import { writeFence, writeStandbySignal } from '../../engine/cluster/member-files'
import { waitUntilStreaming } from '../../engine/cluster/streaming'
import { writeUpstream } from '../../engine/cluster/upstream'
import type { Instance } from '../../engine/instance'
import { endInstance } from '../instance/end-instance'
import { makeReady } from '../instance/make-ready'
import type { TaskContext } from '../runner/task'

/** A standby that has WAL to replay first streams only afterwards. */
const STREAM_BOUND_MS = 600_000

/**
 * Starts a member as a standby, fenced as it may be, and waits until it streams; answers the postmaster's pid. One that
 * does not get there is stopped and fenced.
 */
export async function startFollowing(
  instance: Instance,
  upstream: Upstream,
  context: TaskContext,
): Promise<number> {
  writeStandbySignal(instance.layout, instance.user)
  writeUpstream(instance, upstream, context)
  try {
    const { postmasterPid } = await makeReady(instance, context, { asStandby: true })
    await waitUntilStreaming(instance, upstream, context, STREAM_BOUND_MS)
    return postmasterPid
  } catch (error) {
    if (context.signal.aborted) throw error
    writeFence(instance.layout, 'it could not follow the primary', instance.user)
    await endInstance(instance, 'fast', context)
    throw error
  }
}
