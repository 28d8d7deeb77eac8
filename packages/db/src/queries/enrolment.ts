import { type EnrolmentState, Fault, fault, type HostName } from '@floe/domain'
import type { Queryable, Transaction } from '../database'
import type { Actor } from './audit'
import { hostNotFound, insertHostCertificate } from './host'

export type EnrolmentView = {
  enrolmentId: string
  hostId: string
  name: string
  state: EnrolmentState
  actorName: string
  createdAt: Date
  expiresAt: Date
  /** Where the agent that used the token said it answers. */
  agentUrl: string | null
  fault: Fault | null
}

const enrolmentQuery = `
  SELECT id AS "enrolmentId", "hostId", name, "actorName", "createdAt", "expiresAt", "agentUrl", fault,
         CASE WHEN "signedAt" IS NOT NULL THEN 'enrolled' WHEN "withdrawnAt" IS NOT NULL THEN 'withdrawn'
              WHEN fault IS NOT NULL THEN 'failed' WHEN "requestedAt" IS NOT NULL THEN 'signing'
              WHEN "expiresAt" <= clock_timestamp() THEN 'expired' ELSE 'waiting' END AS state
    FROM host_enrolment`

function enrolmentView(row: Omit<EnrolmentView, 'fault'> & { fault: unknown }): EnrolmentView {
  const parsed = Fault.safeParse(row.fault)
  return { ...row, fault: parsed.success ? parsed.data : null }
}

/**
 * Makes a one-time token's row; the token itself is not known here. `again` enrols an existing host again, whose
 * instances stay; without it the name must be free. An older token of the name that was not used is void. Throws
 * `host.name_taken` or `host.not_found`.
 */
export async function insertEnrolment(
  tx: Transaction,
  enrolment: {
    enrolmentId: string
    /** Of the new host; a host that is enrolled again keeps its own. */
    hostId: string
    name: HostName
    again: boolean
    tokenHash: string
    actor: Actor
    minutes: number
  },
): Promise<{ hostId: string; expiresAt: Date }> {
  const { name, again } = enrolment
  const { rows: hosts } = await tx.query<{ hostId: string }>(
    `SELECT id AS "hostId" FROM host WHERE name = $1 AND "removedAt" IS NULL`,
    [name],
  )
  const known = hosts[0]
  if (known && !again)
    throw fault('host.name_taken', `host "${name}" already exists`, {
      hint: `Choose another name, or enrol that host again with "./floe host add ${name} --again".`,
    })
  if (!known && again) throw hostNotFound(name)
  await tx.query(
    `UPDATE host_enrolment SET "withdrawnAt" = clock_timestamp()
      WHERE name = $1 AND "signedAt" IS NULL AND "withdrawnAt" IS NULL`,
    [name],
  )
  const { rows } = await tx.query<{ hostId: string; expiresAt: Date }>(
    `INSERT INTO host_enrolment (id, "hostId", name, "tokenHash", actor, "actorName", "expiresAt")
     VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + make_interval(mins => $7))
     RETURNING "hostId", "expiresAt"`,
    [
      enrolment.enrolmentId,
      known?.hostId ?? enrolment.hostId,
      name,
      enrolment.tokenHash,
      enrolment.actor.id,
      enrolment.actor.name,
      enrolment.minutes,
    ],
  )
  return rows[0] as { hostId: string; expiresAt: Date }
}

/** Tokens that are waited for or failed, newest first; those that expired for an hour. */
export async function listEnrolments(on: Queryable): Promise<EnrolmentView[]> {
  const { rows } = await on.query(
    `SELECT * FROM (${enrolmentQuery} WHERE "expiresAt" > clock_timestamp() - interval '1 hour') e
      WHERE state NOT IN ('enrolled', 'withdrawn') ORDER BY "createdAt" DESC`,
  )
  return rows.map(enrolmentView)
}

/** One enrolment with its state, undefined when there is none. */
export async function showEnrolment(on: Queryable, enrolmentId: string): Promise<EnrolmentView | undefined> {
  const { rows } = await on.query(`${enrolmentQuery} WHERE id = $1`, [enrolmentId])
  return rows[0] && enrolmentView(rows[0])
}

/** Makes a token void that was not used. Answers the host's name; throws `enrolment.not_found`. */
export async function withdrawEnrolment(tx: Transaction, enrolmentId: string): Promise<string> {
  const { rows } = await tx.query<{ name: string }>(
    `UPDATE host_enrolment SET "withdrawnAt" = clock_timestamp()
      WHERE id = $1 AND "signedAt" IS NULL AND "withdrawnAt" IS NULL RETURNING name`,
    [enrolmentId],
  )
  if (!rows[0]) throw fault('enrolment.not_found', 'this token does not exist or was used')
  return rows[0].name
}

export type TakenEnrolment = {
  enrolmentId: string
  hostId: string
  name: string
  /** Who made the token. */
  actor: Actor
  /** False where the same request was sent before. */
  first: boolean
  /** PEM, once the controller has signed. */
  certificate: string | null
}

type TokenRow = Omit<TakenEnrolment, 'actor' | 'first'> & {
  actor: string
  actorName: string
  expired: boolean
  withdrawn: boolean
  request: string | null
  agentUrl: string | null
  fault: unknown
}

/**
 * Uses up a token by the first request that comes with it; the same request gets the same answer, any other none. Throws
 * `enrolment.token_unknown`, `_expired`, `_withdrawn`, `_used`, or why the request was refused.
 */
export async function takeEnrolment(
  tx: Transaction,
  asked: { tokenHash: string; request: string; agentUrl: string; ipAddress: string | null },
): Promise<TakenEnrolment> {
  const { rows } = await tx.query<TokenRow>(
    `SELECT id AS "enrolmentId", "hostId", name, actor, "actorName", "expiresAt" <= clock_timestamp() AS expired,
            "withdrawnAt" IS NOT NULL AS withdrawn, request, "agentUrl", certificate, fault
       FROM host_enrolment WHERE "tokenHash" = $1 FOR UPDATE`,
    [asked.tokenHash],
  )
  const found = rows[0]
  const hint = 'Get a new one with "./floe host add".'
  if (!found) throw fault('enrolment.token_unknown', 'this token is not known', { hint })
  if (found.withdrawn) throw fault('enrolment.token_withdrawn', 'this token was withdrawn', { hint })
  const first = found.request === null
  if (first && found.expired)
    throw fault('enrolment.token_expired', 'this token has expired', {
      hint,
    })
  if (!first && (found.request !== asked.request || found.agentUrl !== asked.agentUrl))
    throw fault('enrolment.token_used', 'this token was already used', {
      detail: 'Another host, or this one with another key or address, asked with it before.',
      hint: `${hint} If it was not you who used it, revoke host "${found.name}".`,
    })
  const refused = Fault.safeParse(found.fault)
  if (refused.success) throw fault(refused.data.code, refused.data.message, { hint })
  if (first)
    await tx.query(
      `UPDATE host_enrolment SET "requestedAt" = clock_timestamp(), request = $2, "agentUrl" = $3, "ipAddress" = $4
        WHERE id = $1`,
      [found.enrolmentId, asked.request, asked.agentUrl, asked.ipAddress],
    )
  const { enrolmentId, hostId, name, actor, actorName, certificate } = found
  return { enrolmentId, hostId, name, actor: { id: actor, name: actorName }, first, certificate }
}

export type UnsignedEnrolment = {
  enrolmentId: string
  hostId: string
  name: string
  request: string
  agentUrl: string
}

/** The oldest request that waits for a certificate and that no other controller works on; the transaction keeps it. */
export async function takeUnsignedEnrolment(tx: Transaction): Promise<UnsignedEnrolment | undefined> {
  const { rows } = await tx.query<UnsignedEnrolment>(
    `SELECT id AS "enrolmentId", "hostId", name, request, "agentUrl" FROM host_enrolment
      WHERE request IS NOT NULL AND "signedAt" IS NULL AND "withdrawnAt" IS NULL AND fault IS NULL
      ORDER BY "requestedAt" LIMIT 1 FOR UPDATE SKIP LOCKED`,
  )
  return rows[0]
}

/**
 * Writes the certificate and with it the host: its row, or its new address where it is enrolled again. Certificates it
 * had before are revoked, and the host itself is not any more. Throws a unique violation where the name was taken
 * meanwhile.
 */
export async function completeEnrolment(
  tx: Transaction,
  enrolment: UnsignedEnrolment,
  certificate: { pem: string; fingerprint: string; notBefore: number; notAfter: number },
): Promise<void> {
  const { hostId, name, agentUrl, enrolmentId } = enrolment
  await tx.query(
    `INSERT INTO host (id, name, "agentUrl", "enrolledAt") VALUES ($1, $2, $3, clock_timestamp())
     ON CONFLICT (id) DO UPDATE SET "agentUrl" = excluded."agentUrl", "enrolledAt" = excluded."enrolledAt",
        "revokedAt" = NULL, "revokedBy" = NULL, fault = NULL`,
    [hostId, name, agentUrl],
  )
  await tx.query(
    `UPDATE host_certificate SET "revokedAt" = clock_timestamp() WHERE "hostId" = $1 AND "revokedAt" IS NULL`,
    [hostId],
  )
  await insertHostCertificate(tx, { hostId, ...certificate })
  await tx.query(`UPDATE host_enrolment SET "signedAt" = clock_timestamp(), certificate = $2 WHERE id = $1`, [
    enrolmentId,
    certificate.pem,
  ])
}

/** Notes why a request got no certificate; it is not tried again. */
export async function failEnrolment(on: Queryable, enrolmentId: string, why: Fault): Promise<void> {
  await on.query(`UPDATE host_enrolment SET fault = $2 WHERE id = $1 AND "signedAt" IS NULL`, [
    enrolmentId,
    JSON.stringify(why),
  ])
}
