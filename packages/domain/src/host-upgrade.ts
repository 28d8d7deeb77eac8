import { z } from 'zod'
import { ClusterId, type ClusterMember, type ClusterObserved, judgeCandidates, primaryOf } from './cluster'
import { EngineBuild } from './engine-build'
import { Fault } from './fault'
import { whyNotFollowing } from './following'
import type { HostState } from './host'
import { HostPackageList, PackageChange, PackagesInstalled } from './host-package'
import { HostId, InstanceName, OperationId } from './ids'
import { fencedWords } from './member-role'
import { OperationState } from './operation'
import type { OperationInput } from './operations'

/** What happens to a member, in the order of the plan. */
export const UpgradeStep = z.object({
  action: z.enum(['restart-standby', 'switchover', 'restart-former-primary', 'restart-primary']),
  member: z.string(),
  /** A sentence: what happens, and what clients see of it. */
  text: z.string(),
})
export type UpgradeStep = z.infer<typeof UpgradeStep>

const LeftMember = z.object({ member: z.string(), why: z.string() })
export type LeftMember = z.infer<typeof LeftMember>

/** How the members of one cluster on a host come onto the installed engine: one operation. */
export const ClusterUpgrade = z.object({
  cluster: z.string(),
  /** The primary that clients write to before. */
  primary: z.string(),
  steps: z.array(UpgradeStep),
  /** Members that stay on their build, and why. */
  left: z.array(LeftMember),
})
export type ClusterUpgrade = z.infer<typeof ClusterUpgrade>

/** What an upgrade of a host would do, by what was last seen of it. */
export const HostUpgradePlan = z.object({
  /** The installed engine; null where the host's agent does not report one. */
  build: EngineBuild.nullable(),
  /** Why nothing can be done now. */
  blocker: Fault.nullable(),
  clusters: z.array(ClusterUpgrade),
  /** Instances that run on the installed engine already. */
  current: z.array(z.string()),
  /** What packages are brought first, from which version to which; left out where none are. */
  packages: z.array(PackageChange).optional(),
})
export type HostUpgradePlan = z.infer<typeof HostUpgradePlan>

/** An operation that an upgrade ordered, and how it ended; null while it has not. */
export const UpgradeOrdered = z.object({
  cluster: z.string(),
  clusterId: ClusterId,
  operationId: OperationId,
  /** A switchover back to the host, after it. */
  back: z.boolean(),
  state: OperationState.nullable(),
  /** Why the cluster stayed as it was, where the upgrade went on without it. */
  why: z.string().nullish(),
})
export type UpgradeOrdered = z.infer<typeof UpgradeOrdered>

/** An upgrade that was asked for. */
export const HostUpgrade = z.object({
  upgradeId: z.uuid(),
  hostId: HostId,
  build: EngineBuild,
  switchBack: z.boolean(),
  /** Names of clusters that are left out. */
  except: z.array(z.string()),
  /** What is brought to the host before an instance is moved; null where nothing is. */
  packages: HostPackageList.nullable(),
  /** Whether an earlier version than the installed one may be among them. */
  downgrade: z.boolean(),
  /** Once they are installed. */
  installed: PackagesInstalled.nullable(),
  actorName: z.string(),
  createdAt: z.number(),
  cancelAskedAt: z.number().nullable(),
  endedAt: z.number().nullable(),
  ordered: z.array(UpgradeOrdered),
  /** What it waits for; null where an operation is at work. */
  message: z.string().nullable(),
  /** Members that stayed on their build, and why; null while it has not come to its end. */
  left: z.array(LeftMember).nullable(),
  /** Why it ended before its end. */
  fault: Fault.nullable(),
})
export type HostUpgrade = z.infer<typeof HostUpgrade>

type UpgradedHost = { hostId: string; name: string; state: HostState; build: EngineBuild | null }
/** A cluster's part of a plan, and what orders it; null where nothing can be moved. */
export type PlannedUpgrade = { plan: ClusterUpgrade; input: OperationInput<'upgrade-members'> | null }

/**
 * In which order the instances of a host are moved onto its installed engine: clusters by name; of a cluster its standbys first,
 * one after the other, then a switchover, then the former primary as the standby that it has become. A primary without a
 * standby that could take over is restarted. Pure: console, command line and API show the same.
 */
export function planHostUpgrade(
  host: UpgradedHost,
  clusters: readonly ClusterObserved[],
  except: readonly string[] = [],
): { plan: HostUpgradePlan; upgrades: PlannedUpgrade[] } {
  const { build } = host
  const blocker = whyNotNow(host)
  const of = (cluster: ClusterObserved) => cluster.members.filter((m) => m.hostId === host.hostId)
  const upgrades =
    build === null
      ? []
      : clusters
          .filter((cluster) => of(cluster).some((m) => !m.engine?.current))
          .sort((a, b) => (a.name < b.name ? -1 : 1))
          .map((cluster) =>
            except.includes(cluster.name)
              ? leftOut(cluster, of(cluster))
              : planCluster(cluster, of(cluster), build),
          )
  const current = clusters
    .flatMap(of)
    .filter((m) => m.engine?.current)
    .map((m) => m.name)
    .sort()
  return { plan: { build, blocker, clusters: upgrades.map(({ plan }) => plan), current }, upgrades }
}

/** Clusters as they are once a build is installed on a host: nobody runs on that yet who does not run on it now. */
export const asIfInstalled = (
  clusters: readonly ClusterObserved[],
  hostId: string,
  build: EngineBuild,
): ClusterObserved[] =>
  clusters.map((cluster) => ({
    ...cluster,
    members: cluster.members.map((m) =>
      m.hostId !== hostId || !m.engine
        ? m
        : {
            ...m,
            engine: {
              ...m.engine,
              current: m.engine.build === build && (m.engine.running === null || m.engine.running === build),
            },
          },
    ),
  }))

function whyNotNow({ name, state, build }: UpgradedHost): Fault | null {
  if (state !== 'online')
    return {
      code: 'host.silent',
      message: `host "${name}" does not answer`,
      detail: 'What is installed there, and what its instances run, is not known now.',
      hint: `See "./floe host show ${name}".`,
    }
  if (build === null)
    return {
      code: 'host.older_agent',
      message: `the agent of host "${name}" does not report the installed engine`,
      hint: 'Upgrade the agent first: docs/guide/upgrading.md.',
    }
  return null
}

/** Why a member cannot be moved as it was last seen; null where it can. */
function whyLeft(cluster: ClusterObserved, member: ClusterMember): string | null {
  if (!member.engine) return 'its agent does not report what it runs'
  if (member.memberRole === 'fenced' || member.fenced) return `it is ${fencedWords(member)}: rejoin it first`
  if (member.state !== 'running')
    return `it is ${member.state}: only an instance that runs on its former engine is moved, so start it first`
  if (member.instanceId === cluster.primaryInstanceId) return null
  const fault = whyNotFollowing(cluster, member)
  return fault && `it does not follow its primary: ${fault.message}`
}

const leftOut = (cluster: ClusterObserved, members: readonly ClusterMember[]): PlannedUpgrade => ({
  plan: {
    cluster: cluster.name,
    primary: primaryOf(cluster)?.name ?? '',
    steps: [],
    left: members
      .filter((m) => !m.engine?.current)
      .map((m) => ({ member: m.name, why: 'its cluster is left out' })),
  },
  input: null,
})

/**
 * Whether an operation that failed so has stopped no instance that it did not start again on the new engine: nothing is known
 * against the engine then, and the instances of others need not wait for anyone who can fix this one.
 */
export const leftUnharmed = ({ code }: Fault): boolean =>
  /^(candidate|switchover)[.]/.test(code) || unharmed.includes(code)
const unharmed = [
  'cluster.moved',
  'cluster.no_member',
  'engine.other_major',
  'engine.would_not_start',
  'instance.not_running',
  'setting.restart_pending',
]

function planCluster(
  cluster: ClusterObserved,
  members: readonly ClusterMember[],
  build: EngineBuild,
): PlannedUpgrade {
  const outdated = members.filter((m) => !m.engine?.current)
  const left = outdated.flatMap((m) => {
    const why = whyLeft(cluster, m)
    return why === null ? [] : [{ member: m.name, why }]
  })
  const moved = outdated.filter((m) => whyLeft(cluster, m) === null)
  const standbys = moved.filter((m) => m.instanceId !== cluster.primaryInstanceId)
  const primary = primaryOf(cluster)
  const primaryMoves = moved.find((m) => m.instanceId === cluster.primaryInstanceId)
  const takesOver = primaryMoves && successorOf(cluster, primaryMoves)
  const steps: UpgradeStep[] = standbys.map((m) => ({
    action: 'restart-standby',
    member: m.name,
    text: `Restart standby "${m.name}" on build ${build}. ${commitsWaitFor(cluster, m)}`,
  }))
  if (primaryMoves && takesOver)
    steps.push(
      {
        action: 'switchover',
        member: takesOver.name,
        text: `Switch over from "${primaryMoves.name}" to "${takesOver.name}" on host "${takesOver.hostName}". Clients reconnect; no commit is lost.`,
      },
      {
        action: 'restart-former-primary',
        member: primaryMoves.name,
        text: `Restart "${primaryMoves.name}", a standby by then, on build ${build}.`,
      },
    )
  else if (primaryMoves)
    steps.push({
      action: 'restart-primary',
      member: primaryMoves.name,
      text: `Restart "${primaryMoves.name}" on build ${build}. Its clients are disconnected and cannot work until it has started: ${whyNobody(cluster, primaryMoves)}.`,
    })
  const names = steps.filter(({ action }) => action !== 'switchover').map(({ member }) => member)
  return {
    plan: { cluster: cluster.name, primary: primary?.name ?? '', steps, left },
    input:
      names.length === 0 || primary === undefined
        ? null
        : {
            clusterId: cluster.clusterId,
            instanceId: takesOver?.instanceId ?? cluster.primaryInstanceId,
            build,
            members: names.map((name) => InstanceName.parse(name)),
            primary: InstanceName.parse(primary?.name),
            switchover: takesOver !== undefined,
          },
  }
}

/** The best standby that could take over now: of another host where there is one, which this upgrade does not touch. */
function successorOf(cluster: ClusterObserved, primary: ClusterMember): ClusterMember | undefined {
  const able = judgeCandidates(cluster, 'switchover')
    .filter(({ blockers }) => blockers.length === 0)
    .flatMap(({ instanceId }) => cluster.members.filter((m) => m.instanceId === instanceId))
  return able.find((m) => m.hostId !== primary.hostId) ?? able[0]
}

function whyNobody(cluster: ClusterObserved, primary: ClusterMember): string {
  const [first] = judgeCandidates(cluster, 'switchover')
  if (cluster.members.length === 1 || !first) return `"${primary.name}" has no standby`
  return `no standby can take over ("${first.name}": ${first.blockers[0]?.message})`
}

/** What the restart of a standby means for commits. */
function commitsWaitFor(cluster: ClusterObserved, standby: ClusterMember): string {
  const { synchronous } = cluster
  if (!synchronous?.instanceIds.includes(standby.instanceId)) return 'Clients do not notice.'
  const others = cluster.members.filter(
    (m) =>
      m.instanceId !== standby.instanceId &&
      synchronous.instanceIds.includes(m.instanceId) &&
      m.instanceId !== cluster.primaryInstanceId &&
      whyNotFollowing(cluster, m) === null,
  )
  return others.length >= synchronous.count
    ? 'Commits are confirmed by the other synchronous standbys meanwhile.'
    : 'Commits wait until it streams again.'
}
