import { Fault, HostFacts, type HostState, hostStateByAge } from '@floe/domain'
import type { Queryable } from '../database'

export type HostView = {
  hostId: string
  name: string
  agentUrl: string
  createdAt: Date
  /** By the age of the agent's last answer. */
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
}

const hostQuery = `
  SELECT h.id AS "hostId", h.name, h."agentUrl", h."createdAt", h."observedAt", h."agentVersion", h."contractVersion",
         h.capabilities, h.facts, h.fault,
         (extract(epoch FROM clock_timestamp() - h."observedAt") * 1000)::float8 AS "ageMs",
         (SELECT count(*)::int FROM instance i WHERE i."hostId" = h.id AND i."deletedAt" IS NULL) AS instances
    FROM host h`

type HostRow = Omit<HostView, 'state' | 'facts' | 'fault'> & { facts: unknown; fault: unknown }

function hostView(row: HostRow): HostView {
  const facts = HostFacts.safeParse(row.facts)
  const fault = Fault.safeParse(row.fault)
  return {
    ...row,
    state: hostStateByAge(row.ageMs),
    facts: facts.success ? facts.data : null,
    fault: fault.success ? fault.data : null,
  }
}

/** All hosts by name. */
export async function listHosts(on: Queryable): Promise<HostView[]> {
  const { rows } = await on.query<HostRow>(`${hostQuery} ORDER BY h.name`)
  return rows.map(hostView)
}

/** One host by id, undefined when there is none. */
export async function showHost(on: Queryable, hostId: string): Promise<HostView | undefined> {
  const { rows } = await on.query<HostRow>(`${hostQuery} WHERE h.id = $1`, [hostId])
  return rows[0] && hostView(rows[0])
}

/** Makes or renames a host's row; what was observed stays. */
export async function registerHost(on: Queryable, host: { hostId: string; name: string; agentUrl: string }) {
  await on.query(
    `INSERT INTO host (id, name, "agentUrl") VALUES ($1, $2, $3)
     ON CONFLICT (id) DO UPDATE SET name = excluded.name, "agentUrl" = excluded."agentUrl"
      WHERE (host.name, host."agentUrl") IS DISTINCT FROM (excluded.name, excluded."agentUrl")`,
    [host.hostId, host.name, host.agentUrl],
  )
}

/** Every host with its agent's address: what a controller has to observe. */
export async function listAgents(
  on: Queryable,
): Promise<{ hostId: string; name: string; agentUrl: string }[]> {
  const { rows } = await on.query(`SELECT id AS "hostId", name, "agentUrl" FROM host ORDER BY id`)
  return rows
}
