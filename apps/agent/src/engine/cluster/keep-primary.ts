import { isDeepStrictEqual } from 'node:util'
import { fault, PrimaryTold } from '@floe/domain'
import { isThere } from '../../host/tree'
import type { Instance } from '../instance'
import type { InstanceRegistry } from '../registry/registry'

/**
 * Keeps who is the primary of an instance's cluster, as an order named it: durably, and never a former one in place of a
 * newer, so that a console whose database was restored from before does not make the agent forget. What engines say of
 * themselves is not kept: their superusers could write that. Whether its members are held back stays as it was ordered last.
 * Answers whether that is what is kept now.
 */
export function keepPrimary(
  registry: Pick<InstanceRegistry, 'get' | 'update'>,
  instanceId: string,
  told: PrimaryTold,
): boolean {
  // of a promotion the number comes from the engine, whose superuser can make it say anything
  if (!PrimaryTold.safeParse(told).success) return false
  const known = registry.get(instanceId).primaryKnown
  if (known && known.timeline > told.timeline) return false
  const { at: _at, ...before } = known ?? { at: 0 }
  const heldBack = told.heldBack === undefined ? known?.heldBack : told.heldBack
  const after = { ...told, ...(heldBack === undefined ? {} : { heldBack }) }
  if (isDeepStrictEqual(before, after)) return true
  registry.update(instanceId, { primaryKnown: { ...after, at: Date.now() } })
  return true
}

/**
 * Whether an instance starts as a primary only by an order: its cluster fails over automatically, and while nobody has said that
 * no other member was promoted meanwhile, one may have been. An engine that finds standby.signal comes up as a standby.
 */
export const isHeldBack = ({ registered, layout }: Pick<Instance, 'registered' | 'layout'>): boolean =>
  registered.primaryKnown?.heldBack != null && !isThere(layout.standbySignal)

/** Refuses a start as a primary that no order allows: one that names it, of a timeline that is not older than what is known. */
export function refuseHeldBack(
  instance: Pick<Instance, 'registered' | 'layout'>,
  primary: PrimaryTold | undefined,
): void {
  const { name, instanceId, primaryKnown: known } = instance.registered
  if (!known || !isHeldBack(instance)) return
  const hint = 'The console orders its start once that is certain. Check that its host is connected.'
  if (!primary)
    throw fault('instance.held_back', `instance "${name}" is held back`, {
      detail:
        'Its cluster has automatic failover: it starts as a primary only when the console reports that no other member was promoted.',
      hint,
    })
  if (primary.instanceId === instanceId && primary.timeline >= known.timeline) return
  throw fault('instance.held_back', `instance "${name}" is held back`, {
    detail:
      primary.instanceId === instanceId
        ? `The order is about timeline ${primary.timeline}, and a primary was named on timeline ${known.timeline} since.`
        : 'By the order another member is the primary.',
    hint: 'Rejoin it as a standby.',
  })
}
