import type { InstanceState, OperationKind } from '@floe/domain'
import { fail, next, type StepBody, wait } from './step'

/**
 * A step that waits until the stored report shows what the task before it did: anyone who sees the operation succeed then
 * also reads the new state. `pidFrom` names the step whose postmaster must be the one that is seen.
 */
export function observeStep<K extends OperationKind>(wanted: InstanceState, pidFrom?: string): StepBody<K> {
  return {
    deadlineMs: 30_000,
    async run(context) {
      const seen = await context.readObservation()
      const pid = pidFrom === undefined ? null : (context.results[pidFrom]?.postmasterPid ?? null)
      const fresh = seen.observedAt !== null
      if (fresh && seen.state === wanted && (pid === null || seen.postmasterPid === pid)) return next()
      if (context.cancelAskedAt) return next()
      if (
        wanted === 'running' &&
        fresh &&
        (seen.state === 'crashed' || seen.state === 'stopped') &&
        isNewer(seen, context)
      )
        return fail({
          code: 'instance.ended_early',
          message: `the instance is ${seen.state} again`,
          detail: seen.because,
          hint: 'Its log has the details.',
        })
      return wait(50, `waiting until it is reported as ${wanted}`)
    },
  }
}

/** A report of well after the step began, whatever the clocks of controller and control database differ by. */
function isNewer(seen: { observedAt: Date | null }, context: { step: { startedAt: Date } }): boolean {
  return seen.observedAt !== null && seen.observedAt.getTime() > context.step.startedAt.getTime() + 3_000
}
