import { type TaskResult, tasks } from '@floe/agent-contract'
import {
  type ClusterMember,
  type ClusterObserved,
  type Fault,
  foreseeableLogin,
  InstanceName,
  isForeseeable,
  loginsOf,
  MemberLogin,
} from '@floe/domain'
import { refuseStandby } from '../guards'
import { primaryMember, rolesOf, upstreamOf } from '../instance-control'
import { pageRepairStep } from '../page-repair'
import { defineOperation, fail, type MemberTask, next, type StepContext, wait } from '../step'
import { tasksStep } from '../tasks-step'

/** A member that does not answer for so long is left as it is, and named. Nothing waits for it meanwhile, so an agent may start. */
const SILENT_MS = 20_000
/** How long a host may be silent while its standby changes over; then both roles stay. */
const REPLICATE_SILENT_MS = 60_000
const SEEN_PATIENCE_MS = 20_000

type Context = StepContext<'renew-roles'>
type Roles = Pick<Context, 'results'>

/** How it went with a member: what its host answered, and in whose name it replicates after that. */
type Renewal = {
  member: ClusterMember
  /** Null where its host was not reached, or is of an earlier version. */
  prepared: TaskResult<'prepare-role'> | null
  /** It streams as its new role, or will when it next follows. */
  moved: boolean
  streaming: boolean
  fault: Fault | null
}

function renewalsOf({ results }: Roles, cluster: ClusterObserved): Renewal[] {
  const faultOf = (result: unknown) => (result as { fault?: Fault } | undefined)?.fault ?? null
  return cluster.members.map((member) => {
    const answer = results.prepare?.[`prepare.${member.name}`]
    const prepared = tasks['prepare-role'].result.safeParse(answer)
    const result = results.replicate?.[`replicate.${member.name}`]
    const replicated = tasks['replicate-as'].result.safeParse(result)
    return {
      member,
      prepared: prepared.success && faultOf(answer) === null ? prepared.data : null,
      moved: replicated.success && faultOf(result) === null,
      streaming: replicated.success && replicated.data.streaming,
      fault: faultOf(answer) ?? faultOf(result),
    }
  })
}

/** Members whose host has made up a role for them. */
const renewed = (context: Roles, cluster: ClusterObserved) =>
  renewalsOf(context, cluster).flatMap((r) => {
    const { role = null, former = null, verifier = null } = r.prepared ?? {}
    return role && former && verifier ? [{ ...r, role, former, verifier }] : []
  })

/** The cluster with its members replicating as other roles than the last reports show. */
const replicatingAs = (
  cluster: ClusterObserved,
  roleOf: (member: ClusterMember) => string | null | undefined,
): ClusterObserved => ({
  ...cluster,
  members: cluster.members.map((m) => {
    const { replication, repair } = loginsOf(m)
    return { ...m, logins: { replication: roleOf(m) ?? replication, repair } }
  }),
})

/** As which role each member replicates from the end of step `replicate` on. */
const settled = (context: Roles, cluster: ClusterObserved): ClusterObserved => {
  const renewals = renewalsOf(context, cluster)
  return replicatingAs(cluster, (m) => {
    const { prepared, moved } = renewals.find((r) => r.member === m) as Renewal
    return moved ? prepared?.role : (prepared?.former ?? prepared?.role)
  })
}

/** The member's agent has restored what it came as. After any other fault it is not known which role it comes as. */
const wentBack = ({ fault }: Renewal) => fault?.code === 'standby.role_refused'

const onHost = (m: ClusterMember, id: string, task: MemberTask['task']): MemberTask => ({
  id,
  hostId: m.hostId,
  hostName: m.hostName,
  task,
})

/** What is to go: the roles of before, also where an earlier run got no further, and new ones that could not be used. */
function retired(context: Roles, cluster: ClusterObserved) {
  return renewalsOf(context, cluster).flatMap((r) => {
    const { member, prepared, moved, streaming } = r
    if (!prepared?.role) return []
    const name = InstanceName.parse(member.name)
    const successor = { name, role: prepared.role }
    if (prepared.former === null) {
      const follows = member.memberRole === 'standby' && member.state === 'running'
      const role = MemberLogin.parse(foreseeableLogin('standby', member.name))
      return role === prepared.role ? [] : [{ role, successor: follows ? successor : null }]
    }
    if (moved) return [{ role: prepared.former, successor: streaming ? successor : null }]
    return wentBack(r) ? [{ role: prepared.role, successor: null }] : []
  })
}

const notRenewed = (cluster: ClusterObserved, reasons: string[]): Fault => ({
  code: 'role.not_renewed',
  message: `could not renew every role of cluster "${cluster.name}"`,
  detail: reasons.map((reason) => reason.replace(/\.?$/, '.')).join(' '),
  hint: `Fix the cause, then run "./floe cluster renew-roles ${cluster.name}".`,
})

const reasonOf = ({ member, fault }: Renewal) =>
  `"${member.name}": ${[fault?.message, fault?.detail].filter(Boolean).join('. ')}`

const retire = tasksStep<'renew-roles'>({
  deadlineMs: 120_000,
  tasks: (context, cluster) => {
    const primary = primaryMember(cluster)
    const roles = retired(context, cluster)
    if (roles.length === 0) return []
    return [
      onHost(primary, 'retire', {
        kind: 'retire-roles',
        instanceId: primary.instanceId,
        retired: roles,
        roles: rolesOf(settled(context, cluster)),
      }),
    ]
  },
})

/**
 * Gives members of an earlier version roles that nobody foresees. The new role comes first, beside the one of before;
 * then one standby after another replicates as it, without a restart; only the role of before of one that streams so
 * goes. What commits wait for is not touched: at most they wait for one standby to reconnect, and the others are
 * connected meanwhile.
 */
export const renewRoles = defineOperation('renew-roles', {
  guard: refuseStandby,
  retryAfresh: true,
  plan: () => [
    { name: 'prepare', title: 'Generate role names on the members’ hosts' },
    { name: 'admit', title: 'Create the new roles beside the former ones' },
    { name: 'replicate', title: 'Switch one standby after another to its new role' },
    { name: 'retire', title: 'Drop the former roles' },
    { name: 'repair', title: 'Let members fetch torn pages from each other' },
    { name: 'observe', title: 'Wait until the new roles are reported' },
  ],
  steps: {
    prepare: tasksStep({
      deadlineMs: 60_000,
      tasks: (_context, cluster) =>
        cluster.members.map((m) =>
          onHost(m, `prepare.${m.name}`, { kind: 'prepare-role', instanceId: m.instanceId }),
        ),
      optional: () => true,
      toleranceMs: SILENT_MS,
    }),
    admit: tasksStep({
      deadlineMs: 60_000,
      tasks: (context, cluster) => {
        const primary = primaryMember(cluster)
        const members = renewed(context, cluster)
        if (members.length === 0) return []
        const after = replicatingAs(
          cluster,
          (m) => members.find(({ member }) => member.instanceId === m.instanceId)?.role,
        )
        const before = replicatingAs(
          cluster,
          (m) => members.find(({ member }) => member.instanceId === m.instanceId)?.former,
        )
        return [
          onHost(primary, 'admit', {
            kind: 'admit-roles',
            instanceId: primary.instanceId,
            logins: members.map(({ role, verifier }) => ({ role, verifier })),
            roles: [...new Set([...rolesOf(before), ...rolesOf(after)])],
          }),
        ]
      },
    }),
    replicate: tasksStep({
      deadlineMs: 300_000,
      sequential: true,
      tasks: (context, cluster) =>
        renewed(context, cluster).map(({ member, role, former }) =>
          onHost(member, `replicate.${member.name}`, {
            kind: 'replicate-as',
            instanceId: member.instanceId,
            upstream: { ...upstreamOf(primaryMember(cluster), member), role },
            former,
          }),
        ),
      optional: () => true,
      toleranceMs: REPLICATE_SILENT_MS,
    }),
    retire: {
      deadlineMs: retire.deadlineMs,
      async run(context) {
        const cluster = await context.readCluster()
        const unknown = renewalsOf(context, cluster).filter((r) => r.prepared && r.fault && !wentBack(r))
        return unknown.length > 0 ? fail(notRenewed(cluster, unknown.map(reasonOf))) : retire.run(context)
      },
    },
    repair: pageRepairStep({ known: settled, toleranceMs: SILENT_MS }),
    observe: {
      deadlineMs: SEEN_PATIENCE_MS + 30_000,
      async run(context) {
        const cluster = await context.readCluster()
        const renewals = renewalsOf(context, cluster)
        const unseen = renewals.filter((r) => r.moved && r.member.logins?.replication !== r.prepared?.role)
        // the role that a member asks for pages as is made up by step `repair`, which goes on without a host that is silent
        const enabled = cluster.pageRepair?.enabled !== false
        const asking = cluster.members.filter(
          (m) =>
            enabled &&
            m.logins?.repair &&
            isForeseeable(m.logins.repair, m.name) &&
            !renewals.some((r) => r.member === m && r.fault),
        )
        const waited = context.now.getTime() - context.step.startedAt.getTime()
        if (unseen.length + asking.length > 0 && !context.cancelAskedAt && waited <= SEEN_PATIENCE_MS)
          return wait(100, 'waiting until the new roles are reported')
        const { kept = [] } =
          tasks['retire-roles'].result.safeParse(context.results.retire?.retire).data ?? {}
        const failed = renewals.filter(wentBack)
        if (failed.length > 0 || kept.length > 0)
          return fail(
            notRenewed(cluster, [
              ...failed.map(reasonOf),
              ...kept.map((role) => `Role "${role}" is still in use`),
            ]),
          )
        const left = [
          ...renewals.filter((r) => r.fault !== null).map(reasonOf),
          ...asking.map(
            ({ name }) =>
              `"${name}": it still fetches pages with its former role: its host did not answer in time`,
          ),
        ]
        return next(
          {
            renewed: renewals.filter((r) => r.moved).map((r) => r.member.name),
            left,
          },
          { log: left.map((reason) => ({ text: `roles are unchanged; ${reason}` })) },
        )
      },
    },
  },
})
