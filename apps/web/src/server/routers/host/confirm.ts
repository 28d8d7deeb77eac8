import { fault, type HostId } from '@floe/domain'
import type { Context } from '../../context'

/** Refuses what would take the console's own machine away. */
export function requireOther(ctx: Context, hostId: HostId): void {
  if (hostId === ctx.ports.files.installation.hostId)
    throw fault('host.own', 'the console’s own machine cannot be revoked or removed', {
      hint: '"./floe down" stops Floe there.',
    })
}

/** Refuses what was not confirmed by typing the host's name. */
export function requireTyped(typed: string, name: string): void {
  if (typed !== name)
    throw fault('host.name_mismatch', `"${typed}" is not the name of this host`, {
      hint: `Type "${name}" to confirm.`,
    })
}
