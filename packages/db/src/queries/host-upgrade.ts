import { randomUUID } from 'node:crypto'
import {
  EngineBuild,
  Fault,
  HostId,
  type HostPackage,
  HostPackageList,
  type HostUpgrade,
  type LeftMember,
  PackagesInstalled,
  UpgradeOrdered,
} from '@floe/domain'
import { z } from 'zod'
import type { Queryable, Transaction } from '../database'
import type { Actor } from './audit'

export type AskedHostUpgrade = {
  hostId: string
  build: EngineBuild
  switchBack: boolean
  /** Names of clusters that are left out. */
  except?: readonly string[]
  /** What is brought to the host first. */
  packages?: readonly HostPackage[]
  downgrade?: boolean
  actor: Actor
}

type Row = {
  id: string
  hostId: string
  build: string
  switchBack: boolean
  except: unknown
  packages: unknown
  downgrade: boolean
  installed: unknown
  actor: string
  actorName: string
  createdAt: Date
  cancelAskedAt: Date | null
  endedAt: Date | null
  ordered: unknown
  message: string | null
  left: unknown
  fault: unknown
}

const upgradeOf = (row: Row): HostUpgrade => ({
  upgradeId: row.id,
  hostId: HostId.parse(row.hostId),
  build: EngineBuild.parse(row.build),
  switchBack: row.switchBack,
  except: z.array(z.string()).parse(row.except),
  packages: HostPackageList.nullable().parse(row.packages),
  downgrade: row.downgrade,
  installed: PackagesInstalled.nullable().parse(row.installed),
  actorName: row.actorName,
  createdAt: row.createdAt.getTime(),
  cancelAskedAt: row.cancelAskedAt?.getTime() ?? null,
  endedAt: row.endedAt?.getTime() ?? null,
  ordered: z.array(UpgradeOrdered).parse(row.ordered),
  message: row.message,
  left: row.left as LeftMember[] | null,
  fault: Fault.nullable().parse(row.fault),
})

/** Asks for an upgrade of a host. One that is open already is answered where it is about the same build; undefined where it is not. */
export async function askHostUpgrade(
  tx: Transaction,
  { hostId, build, switchBack, except = [], packages, downgrade = false, actor }: AskedHostUpgrade,
): Promise<{ upgradeId: string; created: boolean } | undefined> {
  const brought = packages ? JSON.stringify(packages) : null
  await tx.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`host_upgrade ${hostId}`])
  const { rows } = await tx.query<{ id: string; same: boolean }>(
    `SELECT id, build = $2 AND "switchBack" = $3 AND "except" = $4::jsonb
            AND packages IS NOT DISTINCT FROM $5::jsonb AND downgrade = $6 AS same
       FROM host_upgrade WHERE "hostId" = $1 AND "endedAt" IS NULL`,
    [hostId, build, switchBack, JSON.stringify(except), brought, downgrade],
  )
  const open = rows[0]
  if (open) return open.same ? { upgradeId: open.id, created: false } : undefined
  const upgradeId = randomUUID()
  await tx.query(
    `INSERT INTO host_upgrade (id, "hostId", build, "switchBack", "except", packages, downgrade, actor, "actorName")
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [upgradeId, hostId, build, switchBack, JSON.stringify(except), brought, downgrade, actor.id, actor.name],
  )
  return { upgradeId, created: true }
}

/** The newest upgrade of a host; undefined where there was none. */
export async function lastHostUpgrade(on: Queryable, hostId: string): Promise<HostUpgrade | undefined> {
  const { rows } = await on.query<Row>(
    `SELECT * FROM host_upgrade WHERE "hostId" = $1 ORDER BY "createdAt" DESC, id DESC LIMIT 1`,
    [hostId],
  )
  return rows[0] && upgradeOf(rows[0])
}

/** Has the open upgrade of a host end once the operation at work has ended; answers its id. */
export async function cancelHostUpgrade(tx: Transaction, hostId: string): Promise<string | undefined> {
  const { rows } = await tx.query<{ id: string }>(
    `UPDATE host_upgrade SET "cancelAskedAt" = coalesce("cancelAskedAt", now())
      WHERE "hostId" = $1 AND "endedAt" IS NULL RETURNING id`,
    [hostId],
  )
  return rows[0]?.id
}

/** Takes upgrades that nobody carries out, the oldest first; each is the caller's for `leaseMs`. */
export async function takeHostUpgrades(
  on: Queryable,
  leaseMs: number,
): Promise<(HostUpgrade & { actor: Actor })[]> {
  const { rows } = await on.query<Row>(
    `UPDATE host_upgrade SET "takenUntil" = now() + make_interval(secs => $1 / 1000.0)
      WHERE id IN (SELECT id FROM host_upgrade
                    WHERE "endedAt" IS NULL AND ("takenUntil" IS NULL OR "takenUntil" < now())
                    ORDER BY "createdAt" FOR UPDATE SKIP LOCKED)
     RETURNING *`,
    [leaseMs],
  )
  return rows.map((row) => ({ ...upgradeOf(row), actor: { id: row.actor, name: row.actorName } }))
}

export type HostUpgradeChange = {
  ordered?: readonly UpgradeOrdered[]
  installed?: PackagesInstalled
  message?: string | null
  end?: { left: readonly LeftMember[] } | { fault: Fault }
}

/** Writes how far an upgrade is, and gives it back; one that has ended stays as it ended. */
export async function moveHostUpgrade(
  on: Queryable,
  upgradeId: string,
  { ordered, installed, message = null, end }: HostUpgradeChange,
): Promise<void> {
  await on.query(
    `UPDATE host_upgrade
        SET "takenUntil" = NULL, ordered = coalesce($2::jsonb, ordered), message = $3,
            "left" = $4, fault = $5, "endedAt" = CASE WHEN $6 THEN now() END,
            installed = coalesce($7::jsonb, installed)
      WHERE id = $1 AND "endedAt" IS NULL`,
    [
      upgradeId,
      ordered ? JSON.stringify(ordered) : null,
      end ? null : message,
      end && 'left' in end ? JSON.stringify(end.left) : null,
      end && 'fault' in end ? JSON.stringify(end.fault) : null,
      end !== undefined,
      installed ? JSON.stringify(installed) : null,
    ],
  )
}

/** Ends the upgrades that a restored database holds as open. */
export async function endOpenHostUpgrades(tx: Transaction, fault: Fault): Promise<void> {
  await tx.query(
    `UPDATE host_upgrade SET "takenUntil" = NULL, "endedAt" = now(), message = NULL, fault = $1 WHERE "endedAt" IS NULL`,
    [JSON.stringify(fault)],
  )
}
