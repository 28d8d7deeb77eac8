import { lastHostUpgrade } from '@floe/db'
import { viewerProcedure } from '../../procedures'
import { HostUpgradePlanInput, HostUpgradePlanView } from './host.types'
import { requireUpgradePlan } from './upgrade'

/**
 * What an upgrade of a host would do now: which instances run another build of the engine than the installed one, in which
 * order they would be moved, and what cannot be; with packages also which of them would go from which version to which; with the newest upgrade that was asked for. Changes nothing. Throws
 * `host.not_found`.
 */
export const upgradePlan = viewerProcedure
  .input(HostUpgradePlanInput)
  .output(HostUpgradePlanView)
  .query(async ({ ctx, input: { hostId, except, packages, downgrade } }) => {
    const { pool } = ctx.ports.database
    const { plan } = await requireUpgradePlan(pool, hostId, { except, packages, downgrade })
    return { plan, last: (await lastHostUpgrade(pool, hostId)) ?? null, now: Date.now() }
  })
