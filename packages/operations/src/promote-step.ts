import type { TaskInput, TaskResult } from '@floe/agent-contract'
import type { ClusterMember, ClusterObserved, Fault, OperationKind } from '@floe/domain'
import { doubtful, isRefuted, promotionRefuted } from './promotion-record'
import { fail, type StepBody, type StepContext, type StepRecord, wait } from './step'
import { taskStep } from './task-step'

/** Clients wait: look often. */
const QUICK_MS = 15
/**
 * Clients wait, and another standby could take over: a host that is silent for longer is not waited for. A question that gets
 * no answer takes seconds itself; 15 s are not passed.
 */
export const PROMOTE_SILENCE_MS = 8_000
/** A promotion that fails is asked for, or begun, at most so often. */
const ATTEMPTS = 3
/** Its agent has waited for it, and another try would only wait again. */
const waitedInVain = ['promote.behind', 'promote.not_promoted']

type PromoteStep<K extends OperationKind> = {
  on(context: StepContext<K>, cluster: ClusterObserved): ClusterMember
  task(context: StepContext<K>, cluster: ClusterObserved): Extract<TaskInput, { kind: 'promote-instance' }>
  begins(
    task: Extract<TaskInput, { kind: 'promote-instance' }>,
    context: StepContext<K>,
    cluster: ClusterObserved,
  ): StepRecord[]
  records(
    result: TaskResult<'promote-instance'>,
    context: StepContext<K>,
    cluster: ClusterObserved,
  ): StepRecord[]
}

/**
 * Promotes a standby, while clients wait. A promotion that failed is asked for again, at most twice: the same task begins it
 * where it was not begun, and says so where it took place. What ends in a fault of `isRefuted` has not taken place for
 * certain, and may be undone; after any other the standby may be a primary, and its promotion stays unsettled.
 */
export function promoteStep<K extends OperationKind>(definition: PromoteStep<K>): StepBody<K> {
  const step = taskStep<K, 'promote-instance'>('promote-instance', {
    deadlineMs: 30_000,
    pollMs: QUICK_MS,
    ...definition,
    recordsFailure: (fault, context, cluster) => promotionRefuted(fault, context, cluster),
    again: ({ code }, { step: { attempt } }) => !waitedInVain.includes(code) && attempt < ATTEMPTS,
    silence: { afterMs: PROMOTE_SILENCE_MS, fault: silentFault },
  })
  return {
    ...step,
    async run(context) {
      const { attempt } = context.step
      const cluster = await context.readCluster()
      const member = definition.on(context, cluster)
      // decided by an earlier pass, and not to be decided otherwise while it is being undone
      if (attempt > 1 && !isBegun(context, cluster)) return fail(notTold(member))
      const outcome = await step.run(context)
      if (outcome.word !== 'fail') return outcome
      const { word: _word, records: _records, fault, ...news } = outcome
      if (fault.code === 'promote.not_told') return wait(0, fault.message, { attempt: attempt + 1 })
      if (attempt === 1 || !isRefuted(fault)) return outcome
      const earlier = await faultsBefore(context, member.hostId)
      return earlier.every((f) => f && isRefuted(f)) ? outcome : fail(doubtful(fault), news)
    },
  }
}

const isBegun = (
  { operationId, results }: Pick<StepContext, 'operationId' | 'results'>,
  { holdings }: ClusterObserved,
) =>
  (holdings?.promotions ?? []).some((p) => p.operationId === operationId) ||
  // a version that recorded no promotions began the operation: it may have begun this one as well
  (results.verify ?? results.check)?.[results.verify ? 'leftOut' : 'notFollowing'] === undefined

const notTold = ({ name, hostName }: ClusterMember): Fault => ({
  code: 'promote.not_told',
  message: `host "${hostName}" became unreachable before "${name}" was promoted`,
  detail: 'Its agent has no order to promote it and will not get one.',
})

/** How the attempts before this one ended; null where that is not known. */
async function faultsBefore(
  { operationId, step, agentOf }: Pick<StepContext, 'operationId' | 'step' | 'agentOf'>,
  hostId: string,
): Promise<(Fault | null)[]> {
  const attempts = Array.from({ length: step.attempt - 1 }, (_, i) => i + 1)
  return Promise.all(
    attempts.map(async (attempt) => {
      const key = { operationId, step: step.name, attempt }
      const status = await agentOf(hostId)
        .checkTask({ key, afterLogSeq: 0 })
        .catch(() => null)
      return status?.state === 'failed' ? status.fault : null
    }),
  )
}

/** Silent before its agent was ordered anything: then it has not been promoted, and will not be. */
function silentFault(
  member: ClusterMember,
  context: Pick<StepContext, 'operationId' | 'results'>,
  cluster: ClusterObserved,
): Fault {
  if (!isBegun(context, cluster)) return notTold(member)
  const { name, hostName } = member
  return {
    code: 'promote.silent',
    message: `host "${hostName}" became unreachable while "${name}" was being promoted`,
    detail: `Whether "${name}" was promoted is unknown: it counts as a possible primary until its host answers.`,
    hint: `Fail over to another standby: "./floe cluster failover ${cluster.name}", naming host "${hostName}" as unreachable.`,
  }
}
