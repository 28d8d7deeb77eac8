import { FlashbackLog, FlashbackPoint } from '@floe/domain'
import { z } from 'zod'
import flashbackLogSql from '../sql/flashback-log.sql'
import flashbackPointsSql from '../sql/flashback-points.sql'
import flashbackSchemaSql from '../sql/flashback-schema.sql'

/** Asks something of the instance; null while there is no connection. */
type AskRows = (sql: string) => Promise<Record<string, unknown>[] | null>

/** The schema of the views, quoted; null for an engine, or a database, without the extension. */
async function schemaOf(ask: AskRows): Promise<string | null> {
  const schema = (await ask(flashbackSchemaSql))?.[0]?.schema
  return typeof schema === 'string' ? schema : null
}

// the agent's search path holds only the catalog, for safety
const within = (schema: string, sql: string) =>
  sql.replace(/(?<=from )polar_(?:stat_)?flashback_\w+/, (view) => `${schema}.${view}`)

/** The flashback log of an instance; null for an engine, or a database, without its views. */
export async function readFlashbackLog(ask: AskRows): Promise<FlashbackLog | null> {
  const schema = await schemaOf(ask)
  const row = schema === null ? undefined : (await ask(within(schema, flashbackLogSql)))?.[0]
  if (!row) return null
  const off = row.state === 'off'
  const seen = FlashbackLog.safeParse({
    state: row.state,
    mode: off ? null : row.mode,
    oldestAt: numberOf(row.oldest_at),
    newestPointAt: numberOf(row.newest_point_at),
    points: row.points,
    windowBeganAt: numberOf(row.window_began_at),
    windowsEnded: row.windows_ended,
    lastEndedAt: numberOf(row.last_ended_at),
    lastEndReason: row.last_end_reason,
    sizeBytes: row.size_bytes,
    bytesPerSecond: numberOf(row.bytes_per_second),
    failures: row.failures,
    limits: {
      recoveryArea: row.recovery_area,
      rotationMs: row.rotation_ms,
      keepBytes: row.keep_bytes,
      maxBytes: row.max_bytes === 0 ? null : row.max_bytes,
    },
  })
  // a view of a later version may answer otherwise: then the log is unknown, not off
  return seen.success ? seen.data : null
}

/** The moments from which pages can be rebuilt, oldest first. */
export async function readFlashbackPoints(ask: AskRows): Promise<FlashbackPoint[]> {
  const schema = await schemaOf(ask)
  if (schema === null) return []
  return z.array(FlashbackPoint).parse((await ask(within(schema, flashbackPointsSql))) ?? [])
}

/** What of it is news worth a report at once: size, rate and the newest point change all the time. */
export const newsOfFlashback = (log: FlashbackLog | null): string =>
  log === null ? '' : JSON.stringify([log.state, log.mode, log.windowBeganAt, log.windowsEnded, log.limits])

const numberOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null
