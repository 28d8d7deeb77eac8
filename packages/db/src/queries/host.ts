import {
  type AgentAddress,
  Fault,
  fault,
  HostFacts,
  type HostState,
  hostRevoked,
  hostState,
} from '@floe/domain'
import type { Queryable, Transaction } from '../database'

export { hostRevoked }

export type HostView = {
  hostId: string
  name: string
  agentUrl: string
  createdAt: Date
  /** When it was enrolled by a token; null for the console's own machine. */
  enrolledAt: Date | null
  revokedAt: Date | null
  revokedBy: string | null
  /** As a person named it; null while nobody has. */
  powerSupply: string | null
  /** When the newest certificate that was issued to it ends; null where none was issued by a controller yet. */
  certificateEndsAt: Date | null
  /** By the age of the agent's last answer; unknown once it is revoked. */
  state: HostState
  observedAt: Date | null
  ageMs: number | null
  agentVersion: string | null
  contractVersion: string | null
  capabilities: string[]
  facts: HostFacts | null
  /** Why it could not be reached the last time, where it could not. */
  fault: Fault | null
  instances: number
  /** Names of instances that share a user of the operating system with others although the host could separate them. */
  sharedUser: string[]
}

const hostQuery = `
  SELECT h.id AS "hostId", h.name, h."agentUrl", h."createdAt", h."enrolledAt", h."revokedAt", h."revokedBy",
         h."powerSupply",
         h."observedAt", h."agentVersion", h."contractVersion",
         h.capabilities, h.facts, h.fault,
         (extract(epoch FROM clock_timestamp() - h."observedAt") * 1000)::float8 AS "ageMs",
         (SELECT max(c."notAfter") FROM host_certificate c WHERE c."hostId" = h.id AND c."revokedAt" IS NULL) AS "certificateEndsAt",
         (SELECT count(*)::int FROM instance i WHERE i."hostId" = h.id AND i."deletedAt" IS NULL) AS instances,
         ARRAY(SELECT i.name FROM instance i
                WHERE i."hostId" = h.id AND i."deletedAt" IS NULL
                  AND (i.observed #>> '{user,separable}')::boolean AND NOT (i.observed #>> '{user,own}')::boolean
                ORDER BY i.name) AS "sharedUser"
    FROM host h`

type HostRow = Omit<HostView, 'state' | 'facts' | 'fault'> & { facts: unknown; fault: unknown }

function hostView(row: HostRow): HostView {
  const facts = HostFacts.safeParse(row.facts)
  const fault = Fault.safeParse(row.fault)
  return {
    ...row,
    state: hostState({ ageMs: row.ageMs, revoked: row.revokedAt !== null }),
    facts: facts.success ? facts.data : null,
    fault: row.revokedAt ? hostRevoked(row.name).fault : fault.success ? fault.data : null,
  }
}

/** All hosts by name, without those that were removed. */
export async function listHosts(on: Queryable): Promise<HostView[]> {
  const { rows } = await on.query<HostRow>(`${hostQuery} WHERE h."removedAt" IS NULL ORDER BY h.name`)
  return rows.map(hostView)
}

/** The host of this name that was not removed, undefined when there is none. */
export async function findHost(on: Queryable, name: string): Promise<HostView | undefined> {
  const { rows } = await on.query<HostRow>(`${hostQuery} WHERE h.name = $1 AND h."removedAt" IS NULL`, [name])
  return rows[0] && hostView(rows[0])
}

/** One host by id, also a removed one; undefined when there is none. */
export async function showHost(on: Queryable, hostId: string): Promise<HostView | undefined> {
  const { rows } = await on.query<HostRow>(`${hostQuery} WHERE h.id = $1`, [hostId])
  return rows[0] && hostView(rows[0])
}

/** Makes or renames the row of the console's own host; what was observed stays. */
export async function registerHost(on: Queryable, host: { hostId: string; name: string; agentUrl: string }) {
  await on.query(
    `INSERT INTO host (id, name, "agentUrl") VALUES ($1, $2, $3)
     ON CONFLICT (id) DO UPDATE SET name = excluded.name, "agentUrl" = excluded."agentUrl"
      WHERE (host.name, host."agentUrl") IS DISTINCT FROM (excluded.name, excluded."agentUrl")`,
    [host.hostId, host.name, host.agentUrl],
  )
}

/** Columns of an AgentAddress, of a row of host named `h`. */
export const agentAddressColumns = `h.id AS "hostId", h.name AS "hostName", h."agentUrl", h."revokedAt" IS NOT NULL AS revoked,
  ARRAY(SELECT c.fingerprint FROM host_certificate c
         WHERE c."hostId" = h.id AND c."revokedAt" IS NOT NULL AND c."notAfter" > now()
         ORDER BY 1) AS "revokedCertificates"`

/** Every host that was not removed, with its agent's address: what a controller has to observe, or must not believe. */
export async function listAgents(on: Queryable): Promise<AgentAddress[]> {
  const { rows } = await on.query<AgentAddress>(
    `SELECT ${agentAddressColumns} FROM host h WHERE h."removedAt" IS NULL ORDER BY h.id`,
  )
  return rows
}

/** Where a host's agent answers, undefined for a host that was removed or never there. */
export async function findHostAgent(on: Queryable, hostId: string): Promise<AgentAddress | undefined> {
  const { rows } = await on.query<AgentAddress>(
    `SELECT ${agentAddressColumns} FROM host h WHERE h.id = $1 AND h."removedAt" IS NULL`,
    [hostId],
  )
  return rows[0]
}

/**
 * Revokes a host: from the commit on its certificates are not accepted and its answers not believed. Answers its name;
 * throws `host.not_found` or `host.revoked`.
 */
export async function revokeHost(tx: Transaction, hostId: string, by: string): Promise<string> {
  const { rows } = await tx.query<{ name: string; revoked: boolean }>(
    `SELECT name, "revokedAt" IS NOT NULL AS revoked FROM host WHERE id = $1 AND "removedAt" IS NULL FOR UPDATE`,
    [hostId],
  )
  const host = rows[0]
  if (!host) throw hostNotFound(hostId)
  if (host.revoked) throw hostRevoked(host.name)
  await tx.query(`UPDATE host SET "revokedAt" = clock_timestamp(), "revokedBy" = $2 WHERE id = $1`, [
    hostId,
    by,
  ])
  await tx.query(
    `UPDATE host_certificate SET "revokedAt" = clock_timestamp() WHERE "hostId" = $1 AND "revokedAt" IS NULL`,
    [hostId],
  )
  await tx.query(
    `UPDATE host_enrolment SET "withdrawnAt" = clock_timestamp()
      WHERE "hostId" = $1 AND "signedAt" IS NULL AND "withdrawnAt" IS NULL`,
    [hostId],
  )
  return host.name
}

/**
 * Names the power supply of a host, or says with null that it is not known. Answers the host's name and what was named
 * before; throws `host.not_found`.
 */
export async function setPowerSupply(
  tx: Transaction,
  hostId: string,
  powerSupply: string | null,
): Promise<{ name: string; before: string | null }> {
  const { rows } = await tx.query<{ name: string; before: string | null }>(
    `SELECT name, "powerSupply" AS before FROM host WHERE id = $1 AND "removedAt" IS NULL FOR UPDATE`,
    [hostId],
  )
  const host = rows[0]
  if (!host) throw hostNotFound(hostId)
  await tx.query(`UPDATE host SET "powerSupply" = $2 WHERE id = $1`, [hostId, powerSupply])
  return host
}

/**
 * Forgets a revoked host and its instances; what they left behind on the machine stays there. Answers its name and how
 * many instances were forgotten. Throws `host.not_found`, `host.not_revoked` or `host.conflict`.
 */
export async function removeHost(
  tx: Transaction,
  hostId: string,
): Promise<{ name: string; instances: number }> {
  const { rows } = await tx.query<{ name: string; revoked: boolean; busy: boolean }>(
    `SELECT name, "revokedAt" IS NOT NULL AS revoked,
            EXISTS (SELECT 1 FROM operation o JOIN instance i ON i.id = o."instanceId" WHERE i."hostId" = host.id
                       AND o.state IN ('queued', 'running', 'cancelling')) AS busy
       FROM host WHERE id = $1 AND "removedAt" IS NULL FOR UPDATE`,
    [hostId],
  )
  const host = rows[0]
  if (!host) throw hostNotFound(hostId)
  if (!host.revoked)
    throw fault('host.not_revoked', `host "${host.name}" is still part of this console`, {
      hint: 'Revoke it first; then nothing of it is believed any more, and it can be removed.',
    })
  if (host.busy)
    throw fault('host.conflict', `an operation on an instance of host "${host.name}" has not ended`, {
      hint: 'Wait until it has ended: operations of a revoked host fail within seconds.',
    })
  const { rows: led } = await tx.query<{ name: string }>(
    `SELECT c.name FROM cluster c JOIN instance p ON p.id = c."primaryInstanceId"
      WHERE p."hostId" = $1 AND p."deletedAt" IS NULL AND c."deletedAt" IS NULL
        AND EXISTS (SELECT FROM instance m
                     WHERE m."clusterId" = c.id AND m."hostId" <> $1 AND m."deletedAt" IS NULL)
      ORDER BY c.name`,
    [hostId],
  )
  if (led[0])
    throw fault('host.conflict', `the primary of cluster "${led[0].name}" is on host "${host.name}"`, {
      detail: 'Its standbys on other hosts would be left without a primary.',
      hint: 'Fail over to one of them first.',
    })
  const { rows: kept } = await tx.query<{ name: string }>(
    `SELECT c.name FROM cluster c JOIN instance p ON p.id = c."primaryInstanceId"
      WHERE p."hostId" = $1 AND p."deletedAt" IS NULL AND c."deletedAt" IS NULL AND c."deletionProtected"
      ORDER BY c.name FOR NO KEY UPDATE OF c`,
    [hostId],
  )
  if (kept[0])
    throw fault(
      'cluster.deletion_protected',
      `cluster "${kept[0].name}", whose primary is on host "${host.name}", has deletion protection`,
      {
        detail: 'With the host the console would forget it.',
        hint: 'Turn deletion protection off first.',
      },
    )
  await tx.query(`UPDATE host SET "removedAt" = clock_timestamp() WHERE id = $1`, [hostId])
  // clusters end with their last member, and instances have why recorded (triggers)
  const { rowCount } = await tx.query(
    `UPDATE instance SET "deletedAt" = clock_timestamp() WHERE "hostId" = $1 AND "deletedAt" IS NULL`,
    [hostId],
  )
  return { name: host.name, instances: rowCount ?? 0 }
}

/** Notes a certificate that is about to be given to a host's agent. */
export async function insertHostCertificate(
  on: Queryable,
  certificate: { hostId: string; fingerprint: string; notBefore: number; notAfter: number },
): Promise<void> {
  await on.query(
    `INSERT INTO host_certificate (fingerprint, "hostId", "notBefore", "notAfter")
     VALUES ($1, $2, to_timestamp($3::float8 / 1000), to_timestamp($4::float8 / 1000)) ON CONFLICT DO NOTHING`,
    [certificate.fingerprint, certificate.hostId, certificate.notBefore, certificate.notAfter],
  )
}

export const hostNotFound = (host: string) => fault('host.not_found', `host "${host}" does not exist`)
