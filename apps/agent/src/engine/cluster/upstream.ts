import type { Upstream } from '@floe/agent-contract'
import { MemberLogin } from '@floe/domain'
import type { Instance } from '../instance'
import type { InstanceRegistry } from '../registry/registry'
import { readClusterSettings, standbySettings, writeClusterSettings } from './member-files'

/** Writes whom a standby follows; it takes effect at the next start or reload. */
export function writeUpstream(
  instance: Instance,
  upstream: Upstream | null,
  context: { registry: Pick<InstanceRegistry, 'update'> },
): void {
  const role = MemberLogin.safeParse(upstream?.role)
  if (role.success) context.registry.update(instance.instanceId, { followsAs: role.data })
  writeClusterSettings(
    instance.layout,
    standbySettings(upstream, instance.asking, readClusterSettings(instance.layout)),
    instance.user,
  )
}
