import {
  askHostUpgrade,
  cancelHostUpgrade,
  hostNotFound,
  insertAuditEvent,
  inTransaction,
  listClustersOfHost,
  type Queryable,
  showHost,
} from '@floe/db'
import { FaultError, fault, type HostId, hostRevoked, planHostUpgrade } from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { requireTyped } from './confirm'
import { HostCancelUpgrade, HostCancelUpgradeInput, HostUpgradeAsked, HostUpgradeInput } from './host.types'

/** A host's name and the plan of its upgrade as things are now; throws `host.not_found`. */
export async function requireUpgradePlan(on: Queryable, hostId: HostId, except: readonly string[]) {
  const host = await showHost(on, hostId)
  if (!host) throw hostNotFound(hostId)
  const build = host.facts?.engineBuild ?? null
  const { plan } = planHostUpgrade({ ...host, build }, await listClustersOfHost(on, hostId), except)
  return { host, plan }
}

/**
 * Asks for the instances of a host to be moved onto the engine that is installed there, as the plan has it: one operation for
 * each cluster, one after the other, carried out by the controller; it ends at the first whose instance
 * did not start, and leaves one that failed before an instance was stopped. One that is open for the
 * same build is answered again. Throws `host.not_found`, `host.revoked`, `host.name_mismatch`, `host.silent`,
 * `host.older_agent`, `engine.not_installed`, `host.nothing_to_upgrade` or `host.upgrade_open`.
 */
export const upgrade = operatorProcedure
  .input(HostUpgradeInput)
  .output(HostUpgradeAsked)
  .mutation(async ({ ctx, input: { hostId, build, confirmName, switchBack, except } }) =>
    inTransaction(ctx.ports.database.pool, async (tx) => {
      const { host, plan } = await requireUpgradePlan(tx, hostId, except)
      if (host.revokedAt !== null) throw hostRevoked(host.name)
      requireTyped(confirmName, host.name)
      if (plan.blocker) throw new FaultError(plan.blocker)
      if (plan.build !== build)
        throw fault(
          'engine.not_installed',
          `engine build "${build}" is not installed on host "${host.name}"`,
          {
            detail: `Installed is "${plan.build}".`,
            hint: 'Look at the plan again.',
          },
        )
      const asked = await askHostUpgrade(tx, { hostId, build, switchBack, except, actor: ctx.actor })
      if (!asked)
        throw fault('host.upgrade_open', `another upgrade of host "${host.name}" has not ended`, {
          hint: `Wait until it has ended, or cancel it: "./floe host upgrade ${host.name} --cancel".`,
        })
      if (!asked.created) return asked
      if (plan.clusters.every(({ steps }) => steps.length === 0))
        throw fault('host.nothing_to_upgrade', `no instance of host "${host.name}" can be moved`, {
          detail:
            plan.clusters
              .flatMap(({ left }) => left.map(({ member, why }) => `"${member}": ${why}.`))
              .join(' ') || 'All of them run on the installed engine.',
        })
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        action: 'host.upgrade',
        outcome: 'allowed',
        objectKind: 'host',
        objectId: hostId,
        detail: { name: host.name, upgradeId: asked.upgradeId, build, switchBack, except },
        ipAddress: ctx.ipAddress,
      })
      return asked
    }),
  )

/**
 * Has the open upgrade of a host end: the operation that works goes to its end, and no further one is ordered. Throws
 * `host.not_found` or `host.no_upgrade`.
 */
export const cancelUpgrade = operatorProcedure
  .input(HostCancelUpgradeInput)
  .output(HostCancelUpgrade)
  .mutation(async ({ ctx, input: { hostId } }) =>
    inTransaction(ctx.ports.database.pool, async (tx) => {
      const host = await showHost(tx, hostId)
      if (!host) throw hostNotFound(hostId)
      const upgradeId = await cancelHostUpgrade(tx, hostId)
      if (!upgradeId) throw fault('host.no_upgrade', `no upgrade of host "${host.name}" is open`)
      await insertAuditEvent(tx, {
        actor: ctx.actor,
        action: 'host.cancelUpgrade',
        outcome: 'allowed',
        objectKind: 'host',
        objectId: hostId,
        detail: { name: host.name, upgradeId },
        ipAddress: ctx.ipAddress,
      })
      return { upgradeId }
    }),
  )
