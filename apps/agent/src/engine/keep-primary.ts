import { PrimaryTold } from '@floe/domain'
import type { InstanceRegistry } from './registry'

/**
 * Keeps who is the primary of an instance's cluster, as an order named it: durably, and never a former one in place of a
 * newer, so that a console whose database was restored from before does not make the agent forget. What engines say of
 * themselves is not kept: their superusers could write that.
 */
export function keepPrimary(
  registry: Pick<InstanceRegistry, 'get' | 'update'>,
  instanceId: string,
  told: PrimaryTold,
): void {
  // of a promotion the number comes from the engine, whose superuser can make it say anything
  if (!PrimaryTold.safeParse(told).success) return
  const known = registry.get(instanceId).primaryKnown
  if (known && known.timeline > told.timeline) return
  if (known?.timeline === told.timeline && known.instanceId === told.instanceId) return
  registry.update(instanceId, { primaryKnown: { ...told, at: Date.now() } })
}
