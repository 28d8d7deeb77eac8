import {
  type ClusterMember,
  type ClusterObserved,
  type Fault,
  foreseeableLogin,
  InstanceName,
  loginsOf,
  MemberLogin,
  type OperationKind,
  repairSourcesOf,
  ScramVerifier,
} from '@floe/domain'
import { primaryMember, rolesOf } from './instance-control'
import { mayLookAgain, waitedMs } from './look-again'
import { type MemberTask, next, type StepBody, type StepContext, wait } from './step'
import { pollTasks } from './tasks-step'

/** A host that has not answered for so long is left out: its member is wired by the next change of the cluster. */
const TOLERANCE_MS = 3_000

const onHost = (m: ClusterMember, id: string, task: MemberTask['task']): MemberTask => ({
  id,
  hostId: m.hostId,
  hostName: m.hostName,
  task,
})

/** Members that can be asked. One that is fenced is not: its files say how it may come back, and nothing else. */
const reachable = (cluster: ClusterObserved) =>
  cluster.members.filter((m) => m.memberRole !== 'fenced' && m.hostState === 'online')

/** Whether the cluster's members are to take pages from each other, so that roles are needed. */
const isWired = (cluster: ClusterObserved) => cluster.pageRepair?.enabled !== false

/** Every member of a wired cluster asks with a role and a password of its own, which its host makes up and keeps. */
export const prepareRepair = (cluster: ClusterObserved, without: string | null): MemberTask[] =>
  (isWired(cluster) ? reachable(cluster) : [])
    .filter((m) => m.instanceId !== without)
    .map((m) => onHost(m, `prepare.${m.name}`, { kind: 'prepare-page-repair', instanceId: m.instanceId }))

type Prepared = Record<string, { repairVerifier?: string; repairRole?: string }>

/** The cluster with the roles that members' agents have just answered; reports show them later. */
const withRepairRoles = (cluster: ClusterObserved, prepared: Prepared): ClusterObserved => ({
  ...cluster,
  members: cluster.members.map((m) => {
    const role = MemberLogin.safeParse(prepared[`prepare.${m.name}`]?.repairRole)
    const { replication } = loginsOf(m)
    return role.success ? { ...m, logins: { replication, repair: role.data } } : m
  }),
})

/** What the primary has to know of the members: names, roles, and verifiers of those that were prepared. */
export function admitRepair(
  cluster: ClusterObserved,
  prepared: Prepared,
  without: string | null,
): MemberTask[] {
  const primary = primaryMember(cluster)
  return [
    onHost(primary, 'admit', {
      kind: 'admit-page-repair',
      instanceId: primary.instanceId,
      members: (isWired(cluster) ? cluster.members : [])
        .filter((m) => m.instanceId !== without)
        .flatMap((m) => {
          const answered = prepared[`prepare.${m.name}`]
          const verifier = ScramVerifier.nullable().parse(answered?.repairVerifier ?? null)
          // an agent of an earlier version answers a verifier and no role
          const role =
            answered?.repairRole ?? (verifier ? foreseeableLogin('repair', m.name) : loginsOf(m).repair)
          return role === null ? [] : [{ name: InstanceName.parse(m.name), verifier, role }]
        }),
    }),
  ]
}

/** Whom each member takes pages from, and who may ask it. A source whose address nobody knows yet is left out. */
export function setRepairSources(
  observed: ClusterObserved,
  prepared: Prepared,
  without: string | null,
): MemberTask[] {
  const cluster = withRepairRoles(observed, prepared)
  return reachable(cluster).map((m) =>
    onHost(m, `sources.${m.name}`, {
      kind: 'set-page-repair-sources',
      instanceId: m.instanceId,
      sources: repairSourcesOf(cluster, m.instanceId, without).flatMap(({ name, connection }) =>
        connection ? [{ name, host: connection.host, port: connection.port }] : [],
      ),
      members: (isWired(cluster) ? cluster.members : [])
        .filter((other) => other.instanceId !== without)
        .map((other) => InstanceName.parse(other.name)),
      // one that is about to leave follows its primary until it has left
      roles: rolesOf(
        cluster,
        m.instanceId === cluster.primaryInstanceId ? { repairWithout: without } : { without },
      ),
    }),
  )
}

/**
 * A step that sets the page repair sources again after the members of a cluster changed. A failure is logged and does
 * not fail the operation: the guard of each instance has images written while no source is healthy, so that this is
 * never a reason to fail a switchover. `without` names a member that is about to leave; `known` adds the roles that
 * agents have answered the operation's own steps, which reports show later.
 */
export function pageRepairStep<K extends OperationKind>({
  without = () => null,
  known = (_context, cluster) => cluster,
  toleranceMs = TOLERANCE_MS,
}: {
  without?: (context: StepContext<K>) => string | null
  known?: (context: StepContext<K>, cluster: ClusterObserved) => ClusterObserved
  toleranceMs?: number
} = {}): StepBody<K> {
  return {
    deadlineMs: 120_000,
    async run(context) {
      if (context.cancelAskedAt) return next({ pageRepair: 'given up' })
      const cluster = known(context, await context.readCluster())
      // a member that only seems to be away would be left out
      const away = cluster.members.some((m) => m.memberRole !== 'fenced' && m.hostState !== 'online')
      const early = mayLookAgain(context) || waitedMs(context, context.step.startedAt) < toleranceMs
      if (away && early) return wait(100, 'checking all members')
      const leaving = without(context)
      const wired = isWired(cluster)
      const prepared = wired
        ? await pollTasks(context, cluster, prepareRepair(cluster, leaving), toleranceMs)
        : ({} as Record<string, Record<string, unknown>>)
      if (prepared === null) return wait(30, 'creating passwords for fetching pages')
      const admitted = wired
        ? await pollTasks(context, cluster, admitRepair(cluster, prepared as Prepared, leaving), toleranceMs)
        : {}
      if (admitted === null) return wait(30, 'allowing the members to fetch pages')
      const set = await pollTasks(
        context,
        cluster,
        setRepairSources(cluster, prepared as Prepared, leaving),
        toleranceMs,
      )
      if (set === null) return wait(30, 'setting the sources')
      const faults = faultsOf({ ...prepared, ...admitted, ...set })
      return next(
        { pageRepair: faults.length === 0 ? 'wired' : 'partly wired' },
        { log: [...faults, ...left(cluster, leaving)].map((text) => ({ text })) },
      )
    },
  }
}

/** A sentence for each task that did not end well. */
export const faultsOf = (results: Record<string, Record<string, unknown>>): string[] =>
  Object.entries(results).flatMap(([id, result]) => {
    const { fault } = result as { fault?: Fault }
    return fault ? [`page repair, ${id}: ${[fault.message, fault.detail].filter(Boolean).join(': ')}`] : []
  })

function left(cluster: ClusterObserved, leaving: string | null): string[] {
  const sources = repairSourcesOf(cluster, cluster.primaryInstanceId, leaving)
  if (sources.length > 0)
    return [`torn pages of the primary are fetched from ${sources.map((m) => m.name).join(', ')}`]
  const saved = primaryMember(cluster).protection?.fullPageWrites === false
  return saved ? ['no page repair source is left: from now on the guard enables full-page images'] : []
}
