import { type TaskResult, tasks } from '@floe/agent-contract'
import {
  type ClusterObserved,
  clusterSettingBlockers,
  clusterSettingFaults,
  type Fault,
  FaultError,
  type MemberCheck,
  type MemberTurn,
  passingBlockers,
  planSettingPhases,
  reverseChecks,
  type SettingChange,
  type SettingPhaseName,
} from '@floe/domain'
import { controlOf, memberOf } from '../instance-control'
import { observeFollowing } from '../observe-following'
import {
  defineOperation,
  fail,
  type MemberTask,
  next,
  type StepBody,
  type StepContext,
  type StepRecord,
  type UndoTask,
  wait,
} from '../step'
import { tasksStep } from '../tasks-step'

/**
 * A standby that was restarted a moment ago may not have been seen streaming yet, and where the controller was away nobody
 * has looked at any host meanwhile.
 */
const SEEN_PATIENCE_MS = 60_000

type Context = StepContext<'change-cluster-settings'>
type Checked = TaskResult<'check-settings'>

/** A long recovery, and a standby that has to replay first. An incident opens after that; the step goes on. */
const TURN_DEADLINE_MS = 900_000

/** The members in the order of the cluster, with what their engines said before anything was changed. */
function checksOf({ input, results }: Context, cluster: ClusterObserved) {
  const said = (results.check?.said ?? {}) as Record<string, Checked>
  return cluster.members.flatMap((m) => {
    const asked = input.members.find((x) => x.instanceId === m.instanceId)
    const own = said[m.name]
    if (!asked || !own) return []
    const check: MemberCheck = {
      instanceId: m.instanceId,
      name: m.name,
      // as it was when the order was decided
      primary: m.instanceId === input.instanceId,
      changes: asked.changes,
      checked: own.checked,
    }
    return [{ ...check, before: own.managed, said: own }]
  })
}

const onHost = (
  cluster: ClusterObserved,
  turn: MemberTurn,
  id: string,
  task: MemberTask['task'],
): MemberTask => {
  const { hostId, hostName } = memberOf(cluster, turn.instanceId)
  return { id: `${id}.${turn.name}`, hostId, hostName, task }
}

/** What a member is asked when it is its turn. */
function turnTasks(cluster: ClusterObserved, turn: MemberTurn, restart: boolean): MemberTask[] {
  const { instanceId } = memberOf(cluster, turn.instanceId)
  const control = controlOf(cluster)
  return [
    ...(Object.keys(turn.atMost).length > 0
      ? [onHost(cluster, turn, 'await', { kind: 'await-settings', instanceId, atMost: turn.atMost })]
      : []),
    onHost(cluster, turn, 'set', control.changeSettings(instanceId, turn.changes)),
    ...(turn.restart && restart
      ? [onHost(cluster, turn, 'restart', control.restartForSettings(instanceId))]
      : []),
  ]
}

/** A phase: its members one after the other, so that at most one of them is down. */
const phaseStep = (phase: SettingPhaseName): StepBody<'change-cluster-settings'> =>
  tasksStep({
    deadlineMs: TURN_DEADLINE_MS,
    sequential: true,
    tasks: (context, cluster) =>
      planSettingPhases(checksOf(context, cluster))
        .filter((p) => p.phase === phase)
        .flatMap((p) => p.members)
        .flatMap((turn) => turnTasks(cluster, turn, context.input.restart)),
    faultOf: (_task, result) => rolledBackFault(result),
    describe: (task, fault) => ofMember(task.id.slice(task.id.indexOf('.') + 1), fault),
    // what they confirmed is asked again at the end
    result: () => ({}),
  })

/** The agent rolled back what the engine did not start with; the member is as it was. */
function rolledBackFault(result: Record<string, unknown>): Fault | null {
  const { rolledBack } = result as Partial<TaskResult<'restart-instance'>>
  if (!rolledBack) return null
  return {
    code: 'setting.rolled_back',
    message: 'the engine did not start with the changed settings',
    detail: [rolledBack.line && `It was ${rolledBack.line}.`, rolledBack.reason].filter(Boolean).join(' '),
  }
}

const ofMember = (name: string, fault: Fault): Fault =>
  fault.code === 'task.cancelled' ? fault : { ...fault, message: `member "${name}": ${fault.message}` }

const asks = tasksStep<'change-cluster-settings'>({
  deadlineMs: 120_000,
  tasks: ({ input }, cluster) =>
    input.members.map(({ instanceId, changes }) => {
      const { name, hostId, hostName } = memberOf(cluster, instanceId)
      return { id: name, hostId, hostName, task: { kind: 'check-settings', instanceId, changes } }
    }),
  describe: (task, fault) => ofMember(task.id, fault),
})

const plural = (changes: readonly SettingChange[] | undefined) =>
  new Set(changes?.map((c) => c.name)).size === 1 ? 'setting' : 'settings'

/**
 * Changes settings on all members of a cluster. Every member's own binary checks the values before anything is changed;
 * then a greater value that standbys may not lack goes to them first, a smaller one to the primary first and to each
 * standby once it replayed that. Members are restarted one after the other where a setting needs it. What fails, or is
 * cancelled, puts every member back, in the order that is right for the way back; the history gets its lines at the end.
 */
export const changeClusterSettings = defineOperation('change-cluster-settings', {
  guard: async ({ input, readCluster }) => {
    const cluster = await readCluster()
    const blockers = cluster ? clusterSettingBlockers(cluster, input.members) : []
    // one that is on its way to its primary, or was not heard of for seconds, is waited for by the operation
    const blocker = blockers.find((b) => !passingBlockers.includes(b.code))
    if (blocker) throw new FaultError(blocker)
  },
  retryAfresh: true,
  plan: (input) => {
    const settings = plural(input.members?.flatMap((m) => m.changes))
    return [
      { name: 'check', title: `Check the ${settings} on every member’s own engine` },
      {
        name: 'standbys',
        title: 'Change the settings that standbys need first, one standby after the other',
      },
      { name: 'primary', title: `Change the ${settings} on the primary` },
      { name: 'replayed', title: 'Change the standbys that have replayed the primary’s change' },
      { name: 'observe', title: 'Wait until all standbys follow' },
      { name: 'confirm', title: `Read the ${settings} back from every member` },
    ]
  },
  steps: {
    check: {
      deadlineMs: 120_000,
      async run(context) {
        const cluster = await context.readCluster()
        if (cluster.primaryInstanceId !== context.input.instanceId)
          return fail({
            code: 'cluster.moved',
            message: 'another member has become the primary meanwhile',
            hint: 'Try again: the order of the members has changed.',
          })
        const blockers = clusterSettingBlockers(cluster, context.input.members)
        const lasting = blockers.find((b) => ![...passingBlockers, 'member.host_silent'].includes(b.code))
        const waited = context.now.getTime() - context.step.startedAt.getTime()
        const [blocker] = blockers
        if (blocker && !lasting && waited < SEEN_PATIENCE_MS && !context.cancelAskedAt)
          return wait(200, blocker.message)
        if (blocker) return fail(lasting ?? blocker)
        const outcome = await asks.run(context)
        if (outcome.word !== 'next') return outcome
        const said: Record<string, Checked> = {}
        for (const [name, result] of Object.entries(outcome.result)) {
          const parsed = tasks['check-settings'].result.safeParse(result)
          if (!parsed.success)
            return fail({
              code: 'agent.bad_result',
              message: `member "${name}" answered a check with an unexpected result`,
            })
          said[name] = parsed.data
        }
        const checks = checksOf({ ...context, results: { check: { said } } }, cluster)
        const [wrong] = clusterSettingFaults(checks, context.input.restart)
        if (wrong) return fail(wrong)
        return next({ said }, { log: decisions(checks, context.input.restart) })
      },
    },
    standbys: phaseStep('standbys'),
    primary: phaseStep('primary'),
    replayed: phaseStep('replayed'),
    observe: observeFollowing((context, cluster) =>
      cluster.members.filter((m) => m.instanceId !== context.input.instanceId).map((m) => m.instanceId),
    ),
    confirm: tasksStep({
      deadlineMs: 60_000,
      tasks: ({ input }, cluster) =>
        input.members.map(({ instanceId, changes }) => {
          const { name, hostId, hostName } = memberOf(cluster, instanceId)
          const pendingAllowed = !input.restart
          return {
            id: name,
            hostId,
            hostName,
            task: { kind: 'confirm-settings', instanceId, changes, pendingAllowed },
          }
        }),
      describe: (task, fault) => ofMember(task.id, fault),
      records: (results, context, cluster) =>
        checksOf(context, cluster).map((m) => confirmedRecord(m, results[m.name])),
      result: (results, context, cluster) => ({
        members: Object.fromEntries(
          checksOf(context, cluster).map((m) => [m.name, confirmedRecord(m, results[m.name]).confirmed]),
        ),
        // for the steps only: not a part of what came out of it
        said: undefined,
      }),
    }),
  },
  undo: (context, cluster) => {
    if (!context.results.check?.said) return []
    const members = checksOf(context, cluster)
    const steps = new Map<string, SettingPhaseName[]>()
    for (const { phase, members: turns } of planSettingPhases(members))
      for (const t of turns) steps.set(t.instanceId, [...(steps.get(t.instanceId) ?? []), phase])
    const before: string[] = []
    return planSettingPhases(reverseChecks(members)).flatMap(({ members: turns }) => {
      const needs = [...before]
      const tasks = turns.flatMap((turn) => {
        const member = members.find((m) => m.instanceId === turn.instanceId)
        const own = turnTasks(cluster, turn, context.input.restart)
        before.push(...own.map((t) => t.id))
        // of a member that takes its changes in two phases, both ways back begin with the first
        const after = steps.get(turn.instanceId)?.[0] ?? 'standbys'
        return own.map(
          (task): UndoTask => ({
            ...task,
            after,
            needs,
            ...(task.task.kind === 'change-settings' && member ? { leaves: leftChanged(member) } : {}),
          }),
        )
      })
      return tasks
    })
  },
})

/** Before anything happens: who takes what when, and what a restart brings besides. */
function decisions(checks: ReturnType<typeof checksOf>, restart: boolean): { text: string }[] {
  const words: Record<SettingPhaseName, string> = {
    standbys: 'first',
    primary: 'then the primary',
    replayed: 'once it replayed that',
  }
  const phases = planSettingPhases(checks)
  const lines = phases.flatMap(({ phase, members }) =>
    members.map((m) => ({
      text: `${words[phase]}: ${m.name}: ${m.changes.map((c) => `${c.name} = ${c.value ?? 'default'}`).join(', ')}${
        m.restart ? (restart ? ', with a restart' : ', in force after its next restart') : ''
      }`,
    })),
  )
  const besides = checks
    .filter((m) => restart && m.said.pendingRestart.length > 0)
    .map((m) => ({ text: `${m.name}: a restart also brings ${m.said.pendingRestart.join(', ')}` }))
  return [...lines, ...besides]
}

type Settled = Extract<StepRecord, { kind: 'settings-confirmed' }>

/** The history's lines of a member: what it held when it was checked, and what it said at the end. */
function confirmedRecord(m: ReturnType<typeof checksOf>[number], result: unknown): Settled {
  const { confirmed, managed } = result as TaskResult<'confirm-settings'>
  return {
    kind: 'settings-confirmed',
    instanceId: m.instanceId,
    confirmed: confirmed.map((c) => ({
      ...c,
      oldValue: m.said.checked.find((x) => x.name.toLowerCase() === c.name.toLowerCase())?.oldValue ?? null,
    })),
    managed,
    managedBefore: m.before,
  }
}

/** For the case that a member cannot be rolled back: what it may have then, which the history must not hide. */
function leftChanged(m: ReturnType<typeof checksOf>[number]): NonNullable<UndoTask['leaves']> {
  return {
    words: `"${m.name}" may have ${m.changes.map((c) => `${c.name} = ${c.value ?? 'default'}`).join(', ')}`,
    records: [
      {
        kind: 'settings-confirmed',
        instanceId: m.instanceId,
        confirmed: m.said.checked.map((c) => ({
          name: c.name,
          oldValue: c.oldValue,
          newValue: m.changes.find((x) => x.name.toLowerCase() === c.name.toLowerCase())?.value ?? null,
          pendingRestart: c.impact === 'restart',
        })),
        reason: 'not confirmed: the change of the cluster failed and this member could not be rolled back',
      },
    ],
  }
}
