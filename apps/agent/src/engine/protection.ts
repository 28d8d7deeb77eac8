import type { Protection } from '@floe/domain'
import type pg from 'pg'
import pageRepairRecoverySql from './sql/page-repair-recovery.sql'
import pageRepairSchemaSql from './sql/page-repair-schema.sql'
import pageRepairSourcesSql from './sql/page-repair-sources.sql'
import pageRepairStatusSql from './sql/page-repair-status.sql'

type StatusRow = {
  state: Protection['state']
  since: string
  why: string | null
  full_page_writes: boolean
  images_in_force: boolean | null
  guard: boolean
}
type SourceRow = {
  source: string
  healthy: boolean
  why: string | null
  flush_lsn: string | null
  replay_lsn: string | null
  checked_at: string | null
}
type RecoveryRow = {
  kind: string
  policy: string
  started_at: string
  ended_at: string | null
  checked: string
  torn: string
  repaired: string
  bytes: string
}

const numberOrNull = (text: string | null) => (text === null ? null : Number(text))

/** What protects the instance against torn pages; null for an engine, or a database, without the views. */
export async function readProtection(client: pg.Client): Promise<Protection | null> {
  const schema = (await client.query<{ schema: string }>(pageRepairSchemaSql)).rows[0]?.schema
  if (schema === undefined) return null
  // the agent's search path holds only the catalog, for safety
  const ask = async <Row extends object>(sql: string) =>
    (await client.query<Row>(sql.replace(/(?<=from )polar_\w+/, (view) => `${schema}.${view}`))).rows
  const status = (await ask<StatusRow>(pageRepairStatusSql))[0]
  if (!status) return null
  const sources = await ask<SourceRow>(pageRepairSourcesSql)
  const recovery = (await ask<RecoveryRow>(pageRepairRecoverySql))[0]
  return {
    state: status.state,
    since: Number(status.since),
    why: status.why ?? '',
    fullPageWrites: status.full_page_writes,
    imagesInForce: status.images_in_force,
    guard: status.guard,
    sources: sources.map((row) => ({
      source: row.source,
      healthy: row.healthy,
      why: row.why,
      flushLsn: row.flush_lsn,
      replayLsn: row.replay_lsn,
      checkedAt: numberOrNull(row.checked_at),
    })),
    recovery: recovery
      ? {
          kind: recovery.kind,
          policy: recovery.policy,
          startedAt: Number(recovery.started_at),
          endedAt: numberOrNull(recovery.ended_at),
          checked: Number(recovery.checked),
          torn: Number(recovery.torn),
          repaired: Number(recovery.repaired),
          bytes: Number(recovery.bytes),
        }
      : null,
  }
}
