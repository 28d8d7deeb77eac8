import type { InstanceView } from '@floe/db'
import {
  automaticBlockers,
  type ClusterObserved,
  FaultError,
  fault,
  ofWholeCluster,
  primaryOf,
  withoutMember,
} from '@floe/domain'
import type { Guarded } from './step'

/** What these refusals look at: nothing of the input, so that any kind can have them. */
type Asked = Pick<Guarded, 'instance' | 'readCluster'>

/** Refusals that several kinds of operations share. Each throws where the operation must not be ordered. */

/** Of what is done to a primary only. */
export async function refuseStandby({ instance, readCluster }: Asked): Promise<void> {
  if (instance.cluster.memberRole === 'primary') return
  const cluster = await readCluster()
  const primary = cluster && primaryOf(cluster)
  throw fault('instance.is_standby', `instance "${instance.name}" is a standby`, {
    hint: primary ? `Name the primary: "${primary.name}".` : 'Name the primary.',
  })
}

/** Of what is done to a standby only. */
export function refusePrimary({ instance }: Asked): void {
  if (instance.cluster.memberRole === 'primary')
    throw fault(
      'instance.is_primary',
      `instance "${instance.name}" is recorded as the primary of its cluster`,
      {
        hint: 'Name a standby. If this one is fenced and the cluster has no other primary, fail over first.',
      },
    )
}

/** Of a standby that leaves its cluster: one that fails over automatically keeps as many members as that takes. */
export async function refuseLeaving(asked: Asked): Promise<void> {
  refusePrimary(asked)
  const { instance } = asked
  const cluster: ClusterObserved | undefined = await asked.readCluster()
  if (!cluster?.automatic) return
  const members = cluster.members.filter((m) => m.instanceId !== instance.instanceId)
  const synchronous = withoutMember(cluster.synchronous, instance.instanceId)
  const before = automaticBlockers(cluster).map((b) => b.code)
  const blocker = automaticBlockers({ ...cluster, members, synchronous }).find(
    (b) => !before.includes(b.code),
  )
  if (blocker)
    throw fault(
      'cluster.automatic',
      `cluster "${cluster.name}" could not fail over automatically and safely without "${instance.name}"`,
      {
        detail: `Then ${blocker.message}.`,
        hint: `Turn automatic failover off first: "./floe cluster automatic ${cluster.name} off".`,
      },
    )
}

/** Of settings that one member alone must not have otherwise than the rest: those are changed across the cluster only. */
export function refuseOfCluster(names: readonly string[], { cluster }: Pick<InstanceView, 'cluster'>): void {
  const refusal = ofWholeCluster(names, cluster)
  if (refusal) throw new FaultError(refusal)
}
