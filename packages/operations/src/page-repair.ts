import {
  type ClusterMember,
  type ClusterObserved,
  type Fault,
  InstanceName,
  type OperationKind,
  repairSourcesOf,
  ScramVerifier,
} from '@floe/domain'
import { primaryMember } from './instance-control'
import { mayLookAgain } from './look-again'
import { type MemberTask, next, type StepBody, type StepContext, wait } from './step'
import { lookAtAll } from './tasks-step'

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

/** Every member of a wired cluster asks with a password of its own, which its host makes and keeps. */
export const prepareRepair = (cluster: ClusterObserved, without: string | null): MemberTask[] =>
  (isWired(cluster) ? reachable(cluster) : [])
    .filter((m) => m.instanceId !== without)
    .map((m) => onHost(m, `prepare.${m.name}`, { kind: 'prepare-page-repair', instanceId: m.instanceId }))

type Prepared = Record<string, { repairVerifier?: string }>

/** What the primary has to know of the members: their names, and verifiers of those that were prepared. */
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
        .map((m) => ({
          name: InstanceName.parse(m.name),
          verifier: ScramVerifier.nullable().parse(prepared[`prepare.${m.name}`]?.repairVerifier ?? null),
        })),
    }),
  ]
}

/** Whom each member takes pages from. A source whose address nobody knows yet is left out. */
export const setRepairSources = (cluster: ClusterObserved, without: string | null): MemberTask[] =>
  reachable(cluster).map((m) =>
    onHost(m, `sources.${m.name}`, {
      kind: 'set-page-repair-sources',
      instanceId: m.instanceId,
      sources: repairSourcesOf(cluster, m.instanceId, without).flatMap(({ name, connection }) =>
        connection ? [{ name, host: connection.host, port: connection.port }] : [],
      ),
      members: (isWired(cluster) ? cluster.members : [])
        .filter((other) => other.instanceId !== without)
        .map((other) => InstanceName.parse(other.name)),
    }),
  )

/**
 * A step that wires page repair anew after the members of a cluster changed. Whatever goes wrong is said and left: the
 * guard of each instance has images written while no source is healthy, so that this is never a reason to fail a
 * switchover. `without` names a member that is about to leave.
 */
export function pageRepairStep<K extends OperationKind>(
  without: (context: StepContext<K>) => string | null = () => null,
): StepBody<K> {
  return {
    deadlineMs: 120_000,
    async run(context) {
      if (context.cancelAskedAt) return next({ pageRepair: 'given up' })
      const cluster = await context.readCluster()
      // a member that only seems to be away would be left out
      const away = cluster.members.some((m) => m.memberRole !== 'fenced' && m.hostState !== 'online')
      if (away && mayLookAgain(context)) return wait(100, 'looking at all members')
      const leaving = without(context)
      const wired = isWired(cluster)
      const prepared = wired
        ? await lookAtAll(context, cluster, prepareRepair(cluster, leaving), TOLERANCE_MS)
        : ({} as Record<string, Record<string, unknown>>)
      if (prepared === null) return wait(30, 'giving the members passwords to ask for pages with')
      const admitted = wired
        ? await lookAtAll(context, cluster, admitRepair(cluster, prepared as Prepared, leaving), TOLERANCE_MS)
        : {}
      if (admitted === null) return wait(30, 'letting the members ask for pages')
      const set = await lookAtAll(context, cluster, setRepairSources(cluster, leaving), TOLERANCE_MS)
      if (set === null) return wait(30, 'naming the sources')
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
    return [`torn pages of the primary are taken from ${sources.map((m) => m.name).join(', ')}`]
  const saved = primaryMember(cluster).protection?.fullPageWrites === false
  return saved ? ['no source of pages is left: the guard has full-page images written from now on'] : []
}
