import type { InstanceObserved } from '@floe/agent-contract'
import { showInstance } from '@floe/db'
import { fault, InstanceName, type OperationInput } from '@floe/domain'
import { adoptedBefore } from '@floe/operations/submit'
import { operatorProcedure } from '../../procedures'
import { OperationRef } from '../operation/operation.types'
import { submit } from '../operation/submit'
import { InstanceAdoptReportedInput } from './instance.types'

/**
 * Makes an instance known to the console that a host's agent reports and that no row records, with a cluster of its own. What it
 * is is asked of the agent now: a probe, within 3 s. One that follows another instance is refused, and one that was deleted here.
 */
export const adoptReported = operatorProcedure
  .input(InstanceAdoptReportedInput)
  .output(OperationRef)
  .mutation(async ({ ctx, input: { hostId, instance, name, idempotencyKey } }) => {
    const submitted = await submit(ctx, {
      kind: 'adopt-instance',
      asked: {},
      hostId,
      idempotencyKey,
      input: async () => {
        const report = await ctx.ports.agents.probeHost(hostId, (trpc) =>
          trpc.report.read.query({ after: null }),
        )
        const seen = report.instances.find((i) => i.instanceId === instance || i.name === instance)
        if (!seen)
          throw fault('instance.not_reported', `the host reports no instance "${instance}"`, {
            hint: 'The incident names the instance that this console does not know; its id does, too.',
          })
        const known = await showInstance(ctx.ports.database.pool, seen.instanceId)
        if (known) throw adoptedBefore(known)
        const named = name ?? InstanceName.parse(seen.name)
        if (report.instances.some((i) => i !== seen && i.name === named))
          throw fault('instance.name_taken', `instance "${named}" already exists on this host`, {
            hint: 'Choose another name.',
          })
        return { instanceId: seen.instanceId, reported: reportedAs(seen, named) }
      },
    })
    // what was asked for is known in full only by what the agent answered then
    const { instanceId, reported } = submitted.input
    const same = instance === instanceId || instance === reported?.formerName
    if (!same || (name ?? reported?.formerName) !== reported?.name)
      throw fault('operation.key_reused', 'idempotency key was used for another operation', {
        detail: `It started operation ${submitted.operationId}.`,
        hint: 'Use a new key for every operation.',
      })
    return submitted
  })

/** What is recorded of it; throws for one that is no primary of its own, or of which that is not known. */
function reportedAs(
  seen: InstanceObserved,
  name: InstanceName,
): OperationInput<'adopt-instance'>['reported'] {
  const refuse = (code: string, message: string, detail: string, hint: string) =>
    fault(code, `instance "${seen.name}" ${message}`, { detail, hint })
  if (seen.fenced)
    throw refuse(
      'instance.fenced',
      'is fenced',
      `It must not run as a primary: ${seen.fenced.reason}.`,
      'Find out which instance took over, and check whether this one holds anything you need; then remove its directory by hand.',
    )
  const follows = seen.primaryKnown && seen.primaryKnown.instanceId !== seen.instanceId
  if (seen.role === 'standby' || seen.standbySignal || follows)
    throw refuse(
      'instance.is_standby',
      'is a standby',
      'It follows another instance, and has no cluster of its own.',
      'Adopt its primary, and create a new standby.',
    )
  if (seen.standbySignal === undefined && seen.role === null)
    throw refuse(
      'agent.older',
      'may be a standby',
      'It does not run, and the agent of its host is of an earlier version, which does not report it.',
      'Run "git pull" and "./floe up" on that host, on an enrolled one "./floe agent start", then try again.',
    )
  if (seen.state === 'creating' || seen.state === 'deleting' || !seen.systemIdentifier)
    throw refuse(
      'instance.not_reported',
      `is ${seen.state}`,
      'Its final state is not known yet.',
      'Try again when that has ended.',
    )
  const { port, systemIdentifier } = seen
  return {
    name,
    formerName: InstanceName.parse(seen.name),
    port,
    systemIdentifier,
    intent: seen.state === 'stopped' ? 'stopped' : 'running',
  }
}
