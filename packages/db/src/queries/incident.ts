import {
  fault,
  type IncidentReport,
  type IncidentSeverity,
  type IncidentState,
  type OperationKind,
} from '@floe/domain'
import type { Queryable, Transaction } from '../database'
import type { Actor } from './audit'

export type IncidentView = {
  incidentId: string
  key: string
  severity: IncidentSeverity
  title: string
  detail: string | null
  hint: string | null
  hostId: string | null
  /** Null where there is no such host any more; the same of instance and operation. */
  hostName: string | null
  instanceId: string | null
  instanceName: string | null
  operationId: string | null
  operationKind: OperationKind | null
  openedAt: Date
  closedAt: Date | null
  /** Why it is over, as a sentence. */
  closedBecause: string | null
  acknowledgedAt: Date | null
  acknowledgedByName: string | null
}

/** Opens an incident, or refreshes the texts of the one that is open under this key. Answers true when it is new. */
export async function openIncident(on: Queryable, report: IncidentReport): Promise<boolean> {
  const { rows } = await on.query<{ opened: boolean }>(
    `INSERT INTO incident (id, key, severity, title, detail, hint, "hostId", "instanceId", "operationId")
     VALUES (gen_random_uuid(), $1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (key) WHERE "closedAt" IS NULL DO UPDATE
        SET severity = excluded.severity, title = excluded.title, detail = excluded.detail, hint = excluded.hint
      WHERE (incident.severity, incident.title, incident.detail, incident.hint)
         IS DISTINCT FROM (excluded.severity, excluded.title, excluded.detail, excluded.hint)
     RETURNING (xmax = 0) AS opened`,
    [
      report.key,
      report.severity,
      report.title,
      report.detail ?? null,
      report.hint ?? null,
      report.hostId ?? null,
      report.instanceId ?? null,
      report.operationId ?? null,
    ],
  )
  return rows[0]?.opened ?? false
}

/** Closes the incidents open under these keys; `because` is a sentence for people, null where nobody knows. Answers the keys that were open. */
export async function closeIncidents(
  on: Queryable,
  keys: readonly string[],
  because: string | null = null,
): Promise<string[]> {
  if (keys.length === 0) return []
  const { rows } = await on.query<{ key: string }>(
    `UPDATE incident SET "closedAt" = now(), "closedBecause" = $2
      WHERE key = ANY ($1) AND "closedAt" IS NULL RETURNING key`,
    [keys, because],
  )
  return rows.map((row) => row.key)
}

/** Closes every open incident of an instance, for when it is deleted. */
export async function closeIncidentsOfInstance(on: Queryable, instanceId: string): Promise<void> {
  await on.query(
    `UPDATE incident SET "closedAt" = now(), "closedBecause" = 'The instance was deleted.'
      WHERE "instanceId" = $1 AND "closedAt" IS NULL`,
    [instanceId],
  )
}

/**
 * Notes that somebody has taken note of an open incident. Answers what it is about, and whether this was the first to do
 * so: the first stays. Throws `incident.not_found` or `incident.closed`.
 */
export async function acknowledgeIncident(
  tx: Transaction,
  incidentId: string,
  actor: Actor,
): Promise<{ key: string; title: string; first: boolean }> {
  const { rows } = await tx.query<{
    key: string
    title: string
    open: boolean
    acknowledged: boolean
  }>(
    `SELECT key, title, "closedAt" IS NULL AS open, "acknowledgedAt" IS NOT NULL AS acknowledged
       FROM incident WHERE id = $1 FOR UPDATE`,
    [incidentId],
  )
  const found = rows[0]
  if (!found) throw incidentNotFound(incidentId)
  const { key, title, open, acknowledged } = found
  if (!open)
    throw fault('incident.closed', 'this incident is resolved', {
      detail: 'What caused it is over, so that nobody needs to take note of it.',
    })
  if (!acknowledged)
    await tx.query(
      `UPDATE incident SET "acknowledgedAt" = clock_timestamp(), "acknowledgedBy" = $2, "acknowledgedByName" = $3
        WHERE id = $1`,
      [incidentId, actor.id, actor.name],
    )
  return { key, title, first: !acknowledged }
}

export const incidentNotFound = (incidentId: string) =>
  fault('incident.not_found', `incident "${incidentId}" does not exist`, {
    hint: 'Resolved incidents are kept for a time only; "./floe incident list --state all" names those that are left.',
  })

const incidentQuery = `
  SELECT n.id AS "incidentId", n.key, n.severity, n.title, n.detail, n.hint,
         n."hostId", CASE WHEN h."removedAt" IS NULL THEN h.name END AS "hostName",
         n."instanceId", CASE WHEN i."deletedAt" IS NULL THEN i.name END AS "instanceName",
         n."operationId", o.kind AS "operationKind",
         n."openedAt", n."closedAt", n."closedBecause", n."acknowledgedAt", n."acknowledgedByName"
    FROM incident n
    LEFT JOIN host h ON h.id = n."hostId"
    LEFT JOIN instance i ON i.id = n."instanceId"
    LEFT JOIN operation o ON o.id = n."operationId"`

/** Where a page of incidents ended. */
export type IncidentPosition = { open: boolean; openedAt: Date; incidentId: string }

/** Incidents, open ones first, each newest first; only the open ones unless `state` says otherwise. */
export async function listIncidents(
  on: Queryable,
  input: {
    instanceId?: string | undefined
    hostId?: string | undefined
    severity?: IncidentSeverity | undefined
    state?: IncidentState | 'all' | undefined
    /** The last one of the page before. */
    after?: IncidentPosition | undefined
    limit?: number | undefined
  } = {},
): Promise<IncidentView[]> {
  const { after, state = 'open' } = input
  const { rows } = await on.query<IncidentView>(
    `${incidentQuery}
      WHERE ($1::uuid IS NULL OR n."instanceId" = $1) AND ($2::uuid IS NULL OR n."hostId" = $2)
        AND ($3::text IS NULL OR n.severity = $3)
        AND ($4 = 'all' OR (n."closedAt" IS NULL) = ($4 = 'open'))
        AND ($5::boolean IS NULL OR (n."closedAt" IS NULL, n."openedAt", n.id) < ($5, $6::timestamptz, $7::uuid))
      ORDER BY (n."closedAt" IS NULL) DESC, n."openedAt" DESC, n.id DESC LIMIT $8`,
    [
      input.instanceId ?? null,
      input.hostId ?? null,
      input.severity ?? null,
      state,
      after?.open ?? null,
      after?.openedAt ?? null,
      after?.incidentId ?? null,
      input.limit ?? 100,
    ],
  )
  return rows
}

/** One incident, undefined when there is none. */
export async function showIncident(on: Queryable, incidentId: string): Promise<IncidentView | undefined> {
  const { rows } = await on.query<IncidentView>(`${incidentQuery} WHERE n.id = $1`, [incidentId])
  return rows[0]
}

export type OpenIncidents = { total: number; critical: number; unacknowledged: number }

/** How many incidents are open. */
export async function countOpenIncidents(on: Queryable): Promise<OpenIncidents> {
  const { rows } = await on.query<OpenIncidents>(
    `SELECT count(*)::int AS total, count(*) FILTER (WHERE severity = 'critical')::int AS critical,
            count(*) FILTER (WHERE "acknowledgedAt" IS NULL)::int AS unacknowledged
       FROM incident WHERE "closedAt" IS NULL`,
  )
  return rows[0] as OpenIncidents
}

/** The open incidents of a host and its instances. */
export async function listOpenIncidentsOfHost(
  on: Queryable,
  hostId: string,
): Promise<{ key: string; detail: string | null }[]> {
  const { rows } = await on.query<{ key: string; detail: string | null }>(
    `SELECT key, detail FROM incident WHERE "hostId" = $1 AND "closedAt" IS NULL`,
    [hostId],
  )
  return rows
}

/** The open incidents of these kinds, wherever they are. */
export async function listOpenIncidentsOfKinds(
  on: Queryable,
  kinds: readonly string[],
): Promise<{ key: string; detail: string | null }[]> {
  const { rows } = await on.query<{ key: string; detail: string | null }>(
    `SELECT key, detail FROM incident WHERE split_part(key, ':', 1) = ANY ($1) AND "closedAt" IS NULL`,
    [kinds],
  )
  return rows
}
