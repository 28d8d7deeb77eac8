import { type ClusterObserved, type OperationKind, primaryOf, standbySeenOf } from '@floe/domain'
import { next, type StepBody, type StepContext, wait } from './step'

/**
 * A step that waits until the stored reports show the primary, and these members streaming from it: a client that sees
 * the operation succeed then also reads the new state. What does not come within `patienceMs` is said and left.
 */
export function observeFollowing<K extends OperationKind>(
  members: (context: StepContext<K>, cluster: ClusterObserved) => string[],
  patienceMs = 20_000,
): StepBody<K> {
  return {
    deadlineMs: patienceMs + 30_000,
    async run(context) {
      const cluster = await context.readCluster()
      const primary = primaryOf(cluster)
      const wanted = members(context, cluster)
      const missing = cluster.members.filter(
        (m) =>
          wanted.includes(m.instanceId) &&
          // one that is fenced streams before its fence is lifted
          (standbySeenOf(primary, m)?.state !== 'streaming' || m.role !== 'standby' || m.fenced !== null),
      )
      const ready = primary?.role === 'primary' && primary.state === 'running'
      if (ready && missing.length === 0) return next()
      const names = missing.map((m) => `"${m.name}"`).join(', ')
      const waited = context.now.getTime() - context.step.startedAt.getTime()
      if (context.cancelAskedAt || waited > patienceMs)
        return next(
          { notSeen: missing.map((m) => m.name) },
          { log: [{ text: `not reported yet: ${names}` }] },
        )
      return wait(
        50,
        ready ? `waiting until ${names} is reported as streaming` : 'waiting until the primary is reported',
      )
    },
  }
}
