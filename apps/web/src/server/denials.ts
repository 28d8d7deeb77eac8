import type { Fault } from '@floe/domain'
import type { Context } from './context'
import { unstorableText } from './text'

type Named = Record<string, unknown>

/** Writes the audit row of a denial, with `more` in its detail. Reads without a session are only an expired session and leave none. */
export async function auditDenial(
  ctx: Context,
  action: string,
  type: string,
  fault: Fault,
  getRawInput: () => Promise<unknown>,
  more: Record<string, unknown> = {},
) {
  const { actor } = ctx
  if (!actor && type !== 'mutation') return
  const [noun] = action.split('.')
  const event = {
    actor: actor ?? { id: 'anonymous', name: 'anonymous' },
    action,
    outcome: 'denied' as const,
    objectKind: noun,
    detail: { code: fault.code, ...more },
    ipAddress: ctx.ipAddress,
  }
  await ctx.ports.denialRows.write(event.actor.id, event, async () => {
    // what somebody unknown sends is not read in order to refuse them
    const input = actor ? ((await getRawInput().catch(() => undefined)) as Named | undefined) : undefined
    const scope = input?.scope as Named | undefined
    const ids = [
      input?.instanceId,
      scope?.instanceId,
      scope?.clusterId,
      input?.operationId,
      input?.incidentId,
    ]
    const objectId = ids.find((id) => typeof id === 'string' && unstorableText(id) === null) as
      | string
      | undefined
    return { ...event, objectId: objectId?.slice(0, 100) }
  })
}
