import type { TaskInput, Upstream } from '@floe/agent-contract'
import {
  type ClusterControl,
  type ClusterMember,
  type ClusterObserved,
  type CommitMode,
  type EngineBuild,
  fault,
  type InstanceId,
  InstanceName,
  type LimitChanges,
  type Lsn,
  loginsOf,
  MemberLogin,
  type PrimaryTold,
  primaryToTell,
  type ReportedInstance,
  replicationLoginOf,
  type SettingChange,
  slotNameOf,
  synchronousStandbyNames,
  whyNotFollowing,
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
  /** Gives it a user of its own, which restarts it. */
  separate(instanceId: InstanceId): Task<'separate-instance'>
  /** Moves it onto the installed engine, which restarts it. */
  upgrade(instanceId: InstanceId, build: EngineBuild): Task<'upgrade-instance'>
  /** Has its agent know it again, as it is recorded; or name it as the console does, which did not know it. */
  adopt(
    member: ClusterMember,
    cluster: ClusterObserved,
    reported?: ReportedInstance | undefined,
  ): Task<'adopt-instance'>
  follow(instanceId: InstanceId, upstream: Upstream): Task<'follow-upstream'>
  repoint(instanceId: InstanceId, upstream: Upstream): Task<'repoint-standby'>
  /** `candidate`: the role that the standby which takes over comes as. */
  demote(instanceId: InstanceId, upstream: Upstream, candidate: string): Task<'demote-instance'>
  restore(instanceId: InstanceId): Task<'restore-primary'>
  /** `timeline`: the newest one that this is about; null where it is meant whichever it is on. */
  fence(instanceId: InstanceId, reason: string, timeline: number | null): Task<'fence-instance'>
  isolate(instanceId: InstanceId): Task<'isolate-standby'>
  promote(
    instanceId: InstanceId,
    conditions: {
      beyondLsn: Lsn | null
      atLeastLsn: Lsn | null
      standbyNames: string
      /** Its agent keeps that it is the primary of its cluster. */
      ofCluster?: boolean
    },
  ): Task<'promote-instance'>
  setSynchronous(instanceId: InstanceId, standbyNames: string): Task<'set-synchronous'>
  /** Its agent keeps who the primary is, and whether it starts as one by an order only. */
  keepPrimary(instanceId: InstanceId, primary: PrimaryTold): Task<'keep-primary'>
  /** Below which level no commit waits, and when it takes a silent primary for lost; null where it does not fail over automatically. */
  setCommitFloor(
    instanceId: InstanceId,
    floor: { commitMode: CommitMode; receiverTimeoutMs: number } | null,
  ): Task<'set-commit-floor'>
  /** synchronous_commit of a database, a role, or a role in a database. */
  setCommitMode(
    instanceId: InstanceId,
    scope: Pick<Task<'set-commit-mode'>, 'database' | 'role' | 'commitMode'>,
  ): Task<'set-commit-mode'>
  changeSettings(instanceId: InstanceId, changes: SettingChange[]): Task<'change-settings'>
  limit(instanceId: InstanceId, changes: LimitChanges): Task<'limit-instance'>
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
  separate: (instanceId) => ({ kind: 'separate-instance', instanceId }),
  upgrade: (instanceId, build) => ({ kind: 'upgrade-instance', instanceId, build }),
  adopt: (member, cluster, reported) => {
    const { instanceId, connection, memberRole } = member
    if (reported) {
      const { intent: _intent, ...as } = reported
      const alone = { memberRole, alone: true, logins: null, roles: [] }
      return { kind: 'adopt-instance', instanceId, ...as, ...alone }
    }
    // every copy has the same
    const systemIdentifier =
      member.systemIdentifier ?? cluster.members.find((m) => m.systemIdentifier)?.systemIdentifier
    const primary = primaryToTell(cluster)
    if (!connection || !systemIdentifier)
      throw fault('instance.never_seen', `the identity of instance "${member.name}" is unknown`, {
        detail:
          'No report has included its port and system identifier, so a directory cannot be proven to be this instance.',
        hint: 'Delete the instance and create a new one.',
      })
    if (cluster.automatic && !primary)
      throw fault('automatic.timeline_unknown', 'the timeline of the primary is not known yet', {
        detail: 'A member of a cluster with automatic failover is held back by its timeline.',
        hint: 'Try again in a moment.',
      })
    return {
      kind: 'adopt-instance',
      instanceId,
      name: InstanceName.parse(member.name),
      port: connection.port,
      systemIdentifier,
      memberRole,
      alone: cluster.members.length === 1,
      logins: member.logins ?? null,
      roles: cluster.members.length === 1 ? [] : rolesOf(cluster),
      ...(primary ? { primary } : {}),
    }
  },
  follow: (instanceId, upstream) => ({ kind: 'follow-upstream', instanceId, upstream }),
  repoint: (instanceId, upstream) => ({ kind: 'repoint-standby', instanceId, upstream, wait: true }),
  demote: (instanceId, upstream, candidate) => ({ kind: 'demote-instance', instanceId, upstream, candidate }),
  restore: (instanceId) => ({ kind: 'restore-primary', instanceId }),
  fence: (instanceId, reason, timeline) => ({ kind: 'fence-instance', instanceId, reason, timeline }),
  isolate: (instanceId) => ({ kind: 'isolate-standby', instanceId }),
  promote: (instanceId, conditions) => ({ kind: 'promote-instance', instanceId, ...conditions }),
  setSynchronous: (instanceId, standbyNames) => ({ kind: 'set-synchronous', instanceId, standbyNames }),
  keepPrimary: (instanceId, primary) => ({ kind: 'keep-primary', instanceId, primary }),
  setCommitFloor: (instanceId, floor) => ({
    kind: 'set-commit-floor',
    instanceId,
    commitFloor: floor?.commitMode ?? null,
    receiverTimeoutMs: floor?.receiverTimeoutMs ?? null,
  }),
  setCommitMode: (instanceId, { database, role, commitMode }) => ({
    kind: 'set-commit-mode',
    instanceId,
    database,
    role,
    commitMode,
  }),
  changeSettings: (instanceId, changes) => ({ kind: 'change-settings', instanceId, changes }),
  limit: (instanceId, changes) => ({ kind: 'limit-instance', instanceId, changes }),
  resolveDrift: (instanceId, how) => ({ kind: 'resolve-drift', instanceId, how }),
  restartForSettings: (instanceId) => ({
    kind: 'restart-instance',
    instanceId,
    mode: 'fast',
    ifPending: true,
  }),
}

export const controls: Record<ClusterControl, InstanceControl> = { agent: agentControl }

/**
 * The order with the primary as it is recorded, for the member's agent to keep: of one that has a member follow, and of one
 * that may start the primary itself. While some promotion is open nobody may start as one; `restore-primary` is ordered only by
 * who knows that nobody else was promoted.
 */
export function tellingPrimary(task: TaskInput, cluster: ClusterObserved | null): TaskInput {
  const primary = cluster && primaryToTell(cluster)
  if (!primary) return task
  switch (task.kind) {
    case 'follow-upstream':
    case 'repoint-standby':
      return { ...task, primary }
    case 'restore-primary':
      return primary.instanceId === task.instanceId ? { ...task, primary } : task
    case 'start-instance':
    case 'restart-instance':
    case 'separate-instance':
    case 'upgrade-instance':
      return primary.instanceId === task.instanceId && cluster.holdings?.promotions.length === 0
        ? { ...task, primary }
        : task
    default:
      return task
  }
}

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

/** The cluster where a member's agent has just answered the role that it replicates as; reports show it later. */
export const withReplicationRole = (
  cluster: ClusterObserved,
  instanceId: unknown,
  prepared: Record<string, unknown> | undefined,
): ClusterObserved => {
  const role = MemberLogin.safeParse(prepared?.replicationRole)
  if (!role.success) return cluster
  return {
    ...cluster,
    members: cluster.members.map((m) =>
      m.instanceId === instanceId
        ? { ...m, logins: { replication: role.data, repair: m.logins?.repair ?? null } }
        : m,
    ),
  }
}

/**
 * The roles of the cluster's members, which are all that their pg_hba.conf lets in as such. `repairWithout` names a member
 * that asks for pages no longer, `without` one that has left.
 */
export function rolesOf(
  cluster: ClusterObserved,
  { without = null, repairWithout = null }: { without?: string | null; repairWithout?: string | null } = {},
): string[] {
  const wired = cluster.pageRepair?.enabled !== false
  return cluster.members
    .filter((m) => m.instanceId !== without)
    .flatMap((m) => {
      const { replication, repair } = loginsOf(m)
      return [replication, wired && m.instanceId !== repairWithout ? repair : null]
    })
    .filter((role) => role !== null)
}

/** How a member reaches another one, by what is stored of both. */
export function upstreamOf(source: ClusterMember, standby: Pick<ClusterMember, 'name' | 'logins'>): Upstream {
  if (!source.connection)
    throw fault('cluster.no_address', `the address of instance "${source.name}" is unknown`)
  return {
    host: source.connection.host,
    port: source.connection.port,
    slot: slotNameOf(standby.name),
    role: replicationLoginOf(standby),
    systemIdentifier: source.systemIdentifier,
    engineVersion: source.engineVersion,
    sizeBytes: null,
  }
}

/** Has a member admitted on another one: slot, and role where a verifier is given. */
export const admit = (
  cluster: ClusterObserved,
  on: ClusterMember,
  standby: Pick<ClusterMember, 'name' | 'logins'>,
  more: { verifier: string | null; slot: boolean },
): Task<'admit-standby'> => ({
  kind: 'admit-standby',
  instanceId: on.instanceId,
  standbyName: InstanceName.parse(standby.name),
  verifier: more.verifier,
  slot: more.slot,
  role: replicationLoginOf(standby),
  roles: rolesOf(cluster),
})

export const dismiss = (
  cluster: ClusterObserved,
  on: ClusterMember,
  standby: Pick<ClusterMember, 'instanceId' | 'name' | 'logins'>,
  keepRole: boolean,
): Task<'dismiss-standby'> => ({
  kind: 'dismiss-standby',
  instanceId: on.instanceId,
  standbyName: InstanceName.parse(standby.name),
  keepRole,
  role: replicationLoginOf(standby),
  roles: rolesOf(cluster, { without: keepRole ? null : standby.instanceId }),
})

/**
 * synchronous_standby_names of a primary, from what is wanted and who of it follows, with who is left out and why. A set that
 * is strict, or `asMany`, never waits for fewer than it asks for: where too few follow, commits wait until they do.
 */
export function standbysNamed(
  cluster: ClusterObserved,
  primaryId: string,
  whyNot: (member: ClusterMember) => string | null,
  { sync = cluster.synchronous, asMany = false } = {},
): { names: string; leftOut: { name: string; why: string }[] } {
  if (!sync) return { names: '', leftOut: [] }
  const wanted = sync.instanceIds
    .filter((id) => id !== primaryId)
    .flatMap((id) => cluster.members.filter((m) => m.instanceId === id))
    .map((m) => ({ name: m.name, why: whyNot(m) }))
  const there = wanted.filter(({ why }) => why === null)
  const all = (sync.strict || asMany) && there.length < Math.min(sync.count, wanted.length)
  return {
    names: synchronousStandbyNames(
      sync,
      (all ? wanted : there).map(({ name }) => name),
    ),
    leftOut: all ? [] : wanted.flatMap(({ name, why }) => (why === null ? [] : [{ name, why }])),
  }
}

/** Of the cluster as it is seen now. */
export const whyNotNamed =
  (cluster: ClusterObserved) =>
  (member: ClusterMember): string | null =>
    whyNotFollowing(cluster, member)?.message ?? null

/** Lines for an operation's log: who commits do not wait for though they were asked to. */
export const leftOutLines = (leftOut: readonly { name: string; why: string }[]): { text: string }[] =>
  leftOut.map(({ name, why }) => ({ text: `commits do not wait for "${name}": ${why}` }))
