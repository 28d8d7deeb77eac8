import type { TaskInput, Upstream } from '@floe/agent-contract'
import {
  type ClusterControl,
  type ClusterMember,
  type ClusterObserved,
  fault,
  type InstanceId,
  InstanceName,
  type Lsn,
  replicationRoleOf,
  type SettingChange,
  slotNameOf,
  synchronousStandbyNames,
} from '@floe/domain'
import type { StepContext } from './step'

type Task<Kind extends TaskInput['kind']> = Extract<TaskInput, { kind: Kind }>

/**
 * Every way in which an operation moves an instance of a cluster between running, stopped, primary and standby, or changes
 * what it runs with. Operations go through this and nothing else, so that a cluster can be handed over, as a whole, to an existing high-availability
 * engine: it then answers with tasks that ask that engine.
 */
export interface InstanceControl {
  start(instanceId: InstanceId): Task<'start-instance'>
  stop(instanceId: InstanceId, mode: Task<'stop-instance'>['mode']): Task<'stop-instance'>
  restart(instanceId: InstanceId, mode: Task<'restart-instance'>['mode']): Task<'restart-instance'>
  reload(instanceId: InstanceId): Task<'reload-instance'>
  follow(instanceId: InstanceId, upstream: Upstream): Task<'follow-upstream'>
  repoint(instanceId: InstanceId, upstream: Upstream): Task<'repoint-standby'>
  demote(instanceId: InstanceId, upstream: Upstream): Task<'demote-instance'>
  restore(instanceId: InstanceId): Task<'restore-primary'>
  fence(instanceId: InstanceId, reason: string): Task<'fence-instance'>
  isolate(instanceId: InstanceId): Task<'isolate-standby'>
  promote(
    instanceId: InstanceId,
    conditions: { beyondLsn: Lsn | null; atLeastLsn: Lsn | null; standbyNames: string },
  ): Task<'promote-instance'>
  setSynchronous(instanceId: InstanceId, standbyNames: string): Task<'set-synchronous'>
  /** synchronous_commit of a database, a role, or a role in a database. */
  setCommitMode(
    instanceId: InstanceId,
    scope: Pick<Task<'set-commit-mode'>, 'database' | 'role' | 'commitMode'>,
  ): Task<'set-commit-mode'>
  changeSettings(instanceId: InstanceId, changes: SettingChange[]): Task<'change-settings'>
  resolveDrift(instanceId: InstanceId, how: Task<'resolve-drift'>['how']): Task<'resolve-drift'>
  /** Restarts it where a setting waits for that. */
  restartForSettings(instanceId: InstanceId): Task<'restart-instance'>
}

/** Floe's agents themselves: one command, one task. */
const agentControl: InstanceControl = {
  start: (instanceId) => ({ kind: 'start-instance', instanceId }),
  stop: (instanceId, mode) => ({ kind: 'stop-instance', instanceId, mode }),
  restart: (instanceId, mode) => ({ kind: 'restart-instance', instanceId, mode }),
  reload: (instanceId) => ({ kind: 'reload-instance', instanceId }),
  follow: (instanceId, upstream) => ({ kind: 'follow-upstream', instanceId, upstream }),
  repoint: (instanceId, upstream) => ({ kind: 'repoint-standby', instanceId, upstream, wait: true }),
  demote: (instanceId, upstream) => ({ kind: 'demote-instance', instanceId, upstream }),
  restore: (instanceId) => ({ kind: 'restore-primary', instanceId }),
  fence: (instanceId, reason) => ({ kind: 'fence-instance', instanceId, reason }),
  isolate: (instanceId) => ({ kind: 'isolate-standby', instanceId }),
  promote: (instanceId, conditions) => ({ kind: 'promote-instance', instanceId, ...conditions }),
  setSynchronous: (instanceId, standbyNames) => ({ kind: 'set-synchronous', instanceId, standbyNames }),
  setCommitMode: (instanceId, { database, role, commitMode }) => ({
    kind: 'set-commit-mode',
    instanceId,
    database,
    role,
    commitMode,
  }),
  changeSettings: (instanceId, changes) => ({ kind: 'change-settings', instanceId, changes }),
  resolveDrift: (instanceId, how) => ({ kind: 'resolve-drift', instanceId, how }),
  restartForSettings: (instanceId) => ({
    kind: 'restart-instance',
    instanceId,
    mode: 'fast',
    ifPending: true,
  }),
}

export const controls: Record<ClusterControl, InstanceControl> = { agent: agentControl }

/** Who moves the instances of this cluster. */
export const controlOf = (cluster: Pick<ClusterObserved, 'control'>): InstanceControl =>
  controls[cluster.control]

/** Who moves the instances of the operation's own cluster; for steps that need nothing else of it. */
export const controlFor = async (context: Pick<StepContext, 'readCluster'>): Promise<InstanceControl> =>
  controlOf(await context.readCluster())

/** The member with this id; throws where it has left the cluster. */
export function memberOf(cluster: ClusterObserved, instanceId: string): ClusterMember {
  const member = cluster.members.find((m) => m.instanceId === instanceId)
  if (!member)
    throw fault('cluster.no_member', `cluster "${cluster.name}" has no such member`, {
      detail: `Instance ${instanceId} is not in it.`,
    })
  return member
}

/** The member that is meant to be the primary; throws where it is gone. */
export const primaryMember = (cluster: ClusterObserved): ClusterMember =>
  memberOf(cluster, cluster.primaryInstanceId)

/** How a member reaches another one, by what is stored of both. */
export function upstreamOf(source: ClusterMember, standbyName: string): Upstream {
  if (!source.connection)
    throw fault('cluster.no_address', `where instance "${source.name}" answers is not known`)
  return {
    host: source.connection.host,
    port: source.connection.port,
    slot: slotNameOf(standbyName),
    role: replicationRoleOf(standbyName),
    systemIdentifier: source.systemIdentifier,
    engineVersion: source.engineVersion,
    sizeBytes: null,
  }
}

/** Has a member admitted on another one: slot, and role where a verifier is given. */
export const admit = (
  on: ClusterMember,
  standbyName: string,
  more: { verifier: string | null; slot: boolean },
): Task<'admit-standby'> => ({
  kind: 'admit-standby',
  instanceId: on.instanceId,
  standbyName: InstanceName.parse(standbyName),
  verifier: more.verifier,
  slot: more.slot,
})

export const dismiss = (
  on: ClusterMember,
  standbyName: string,
  keepRole: boolean,
): Task<'dismiss-standby'> => ({
  kind: 'dismiss-standby',
  instanceId: on.instanceId,
  standbyName: InstanceName.parse(standbyName),
  keepRole,
})

/** synchronous_standby_names of a primary, from what is wanted and who of it is there. */
export function namesFor(
  cluster: ClusterObserved,
  primaryId: string,
  isThere: (member: ClusterMember) => boolean = () => true,
  sync = cluster.synchronous,
): string {
  if (!sync) return ''
  const wanted = sync.instanceIds
    .filter((id) => id !== primaryId)
    .flatMap((id) => cluster.members.filter((m) => m.instanceId === id))
  const there = sync.strict ? wanted : wanted.filter(isThere)
  return synchronousStandbyNames(
    sync,
    there.map((m) => m.name),
  )
}
