import {
  askHostUpgrade,
  cancelHostUpgrade,
  dropPackage,
  hostNotFound,
  insertAuditEvent,
  inTransaction,
  isPackageStored,
  listClustersOfHost,
  type Queryable,
  showHost,
} from '@floe/db'
import {
  asIfInstalled,
  buildAmong,
  FaultError,
  fault,
  type HostPackage,
  type HostUpgradePlan,
  hostRevoked,
  planHostUpgrade,
  planPackages,
} from '@floe/domain'
import type { z } from 'zod'
import type { Context } from '../../context'
import { adminProcedure, operatorProcedure } from '../../procedures'
import { requireTyped } from './confirm'
import {
  HostCancelUpgrade,
  HostCancelUpgradeInput,
  HostUpgradeAsked,
  HostUpgradeInput,
  HostUpgradeWithPackagesInput,
} from './host.types'

type Asked = { except: readonly string[]; packages?: readonly HostPackage[] | undefined; downgrade?: boolean }

/** A host's name and the plan of its upgrade as things are now; throws `host.not_found`. */
export async function requireUpgradePlan(
  on: Queryable,
  hostId: string,
  { except, packages, downgrade = false }: Asked,
) {
  const host = await showHost(on, hostId)
  if (!host) throw hostNotFound(hostId)
  const installed = host.facts?.engineBuild ?? null
  const clusters = await listClustersOfHost(on, hostId)
  if (!packages) {
    const { plan } = planHostUpgrade({ ...host, build: installed }, clusters, except)
    return { host, plan }
  }
  const build = buildAmong(packages) ?? installed
  const then = build === null ? clusters : asIfInstalled(clusters, hostId, build)
  const { plan } = planHostUpgrade({ ...host, build }, then, except)
  const { changes, blocker } = planPackages(host, packages, downgrade)
  return { host, plan: { ...plan, blocker: plan.blocker ?? blocker, packages: changes } }
}

type AskedUpgrade = z.output<typeof HostUpgradeInput> &
  Partial<Pick<z.output<typeof HostUpgradeWithPackagesInput>, 'packages' | 'downgrade'>>

function ask(ctx: Context & { actor: NonNullable<Context['actor']> }, input: AskedUpgrade) {
  const { hostId, build, confirmName, switchBack, except, packages, downgrade = false } = input
  return inTransaction(ctx.ports.database.pool, async (tx) => {
    const { host, plan } = await requireUpgradePlan(tx, hostId, { except, packages, downgrade })
    if (host.revokedAt !== null) throw hostRevoked(host.name)
    requireTyped(confirmName, host.name)
    if (plan.blocker) throw new FaultError(plan.blocker)
    if (plan.build !== build)
      throw fault('engine.not_installed', `engine build "${build}" is not installed on host "${host.name}"`, {
        detail: `Installed is "${plan.build}".`,
        hint: 'Check the plan again.',
      })
    const asked = await askHostUpgrade(tx, {
      ...{ hostId, build, switchBack, except, downgrade },
      ...(packages ? { packages } : {}),
      actor: ctx.actor,
    })
    if (!asked)
      throw fault('host.upgrade_open', `another upgrade of host "${host.name}" has not ended`, {
        hint: `Wait until it has ended, or cancel it: "./floe host upgrade ${host.name} --cancel".`,
      })
    if (!asked.created) return asked
    if (!plan.packages?.some(({ change }) => change !== 'none')) refuseNothing(host.name, plan)
    await insertAuditEvent(tx, {
      actor: ctx.actor,
      action: packages ? 'host.upgradeWithPackages' : 'host.upgrade',
      outcome: 'allowed',
      objectKind: 'host',
      objectId: hostId,
      detail: {
        ...{ name: host.name, upgradeId: asked.upgradeId, build, switchBack, except },
        ...(packages ? { packages: [...packages], downgrade } : {}),
      },
      ipAddress: ctx.ipAddress,
    })
    return asked
  })
}

function refuseNothing(name: string, { clusters, packages }: HostUpgradePlan): void {
  if (clusters.some(({ steps }) => steps.length > 0)) return
  throw fault('host.nothing_to_upgrade', `no instance of host "${name}" can be moved`, {
    detail:
      clusters.flatMap(({ left }) => left.map(({ member, why }) => `"${member}": ${why}.`)).join(' ') ||
      (packages
        ? 'The packages are installed, and all instances run on the engine.'
        : 'All of them run on the installed engine.'),
  })
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
  .mutation(({ ctx, input }) => ask(ctx, input))

/**
 * The same for packages that were stored piece by piece: they are brought to the host and installed there as root before any
 * instance is moved, which is why only an admin asks for it. Throws what `host.upgrade` does, `package.not_stored`,
 * `package.incomplete`, `package.other_machine`, `package.downgrade`, `host.not_packaged` or `host.no_systemd`.
 */
export const upgradeWithPackages = adminProcedure
  .input(HostUpgradeWithPackagesInput)
  .output(HostUpgradeAsked)
  .mutation(async ({ ctx, input }) => {
    const { pool } = ctx.ports.database
    for (const wanted of input.packages) {
      if (await isPackageStored(pool, wanted)) continue
      await dropPackage(pool, wanted.digest)
      throw fault('package.not_stored', `package "${wanted.name}" is not stored as it was named`, {
        detail: 'A part of it is missing, or its digest is another one.',
        hint: 'Upgrade the host again with the packages.',
      })
    }
    return ask(ctx, input)
  })

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
