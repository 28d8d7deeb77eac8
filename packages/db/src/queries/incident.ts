import type { Queryable } from '../database'

export type IncidentSeverity = 'warning' | 'critical'
export type IncidentView = {
  incidentId: string
  key: string
  severity: IncidentSeverity
  title: string
  detail: string | null
  hint: string | null
  hostId: string | null
  instanceId: string | null
  operationId: string | null
  openedAt: Date
  closedAt: Date | null
}

/** Something that needs a person. The key names the cause (`host-offline:<id>`): as long as it lasts it is one incident. */
export type IncidentReport = {
  key: string
  severity: IncidentSeverity
  title: string
  detail?: string | null | undefined
  hint?: string | null | undefined
  hostId?: string | null | undefined
  instanceId?: string | null | undefined
  operationId?: string | null | undefined
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

/** Closes the incidents open under these keys. Answers the keys that were open. */
export async function closeIncidents(on: Queryable, keys: readonly string[]): Promise<string[]> {
  if (keys.length === 0) return []
  const { rows } = await on.query<{ key: string }>(
    `UPDATE incident SET "closedAt" = now() WHERE key = ANY ($1) AND "closedAt" IS NULL RETURNING key`,
    [keys],
  )
  return rows.map((row) => row.key)
}

/** Closes every open incident of an instance, for when it is deleted. */
export async function closeIncidentsOfInstance(on: Queryable, instanceId: string): Promise<void> {
  await on.query(`UPDATE incident SET "closedAt" = now() WHERE "instanceId" = $1 AND "closedAt" IS NULL`, [
    instanceId,
  ])
}

/** Incidents, newest first; only the open ones unless `includeClosed`. */
export async function listIncidents(
  on: Queryable,
  input: {
    instanceId?: string | undefined
    hostId?: string | undefined
    includeClosed?: boolean | undefined
    limit?: number | undefined
  } = {},
): Promise<IncidentView[]> {
  const { rows } = await on.query<IncidentView>(
    `SELECT id AS "incidentId", key, severity, title, detail, hint, "hostId", "instanceId", "operationId",
            "openedAt", "closedAt"
       FROM incident
      WHERE ($1::uuid IS NULL OR "instanceId" = $1) AND ($2::uuid IS NULL OR "hostId" = $2)
        AND ($3::boolean OR "closedAt" IS NULL)
      ORDER BY "openedAt" DESC LIMIT $4`,
    [input.instanceId ?? null, input.hostId ?? null, input.includeClosed ?? false, input.limit ?? 100],
  )
  return rows
}

/** Keys of the open incidents of a host and its instances. */
export async function openIncidentKeys(on: Queryable, hostId: string): Promise<string[]> {
  const { rows } = await on.query<{ key: string }>(
    `SELECT key FROM incident WHERE "hostId" = $1 AND "closedAt" IS NULL`,
    [hostId],
  )
  return rows.map((row) => row.key)
}
