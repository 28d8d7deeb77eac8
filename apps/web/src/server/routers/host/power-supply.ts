import { insertAuditEvent, inTransaction, setPowerSupply } from '@floe/db'
import { adminProcedure } from '../../procedures'
import { HostPowerSupply, HostPowerSupplyInput } from './host.types'

/**
 * Names the power supply of a host; hosts with the same one are taken to fail together. null says that it is not known.
 * Throws `host.not_found`.
 */
export const powerSupply = adminProcedure
  .input(HostPowerSupplyInput)
  .output(HostPowerSupply)
  .mutation(async ({ ctx, input: { hostId, powerSupply } }) => {
    const { name } = await inTransaction(ctx.ports.database.pool, async (tx) => {
      const host = await setPowerSupply(tx, hostId, powerSupply)
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        action: 'host.powerSupply',
        outcome: 'allowed',
        objectKind: 'host',
        objectId: hostId,
        detail: { name: host.name, before: host.before, powerSupply },
        ipAddress: ctx.ipAddress,
      })
      return host
    })
    return { hostId, name, powerSupply }
  })
