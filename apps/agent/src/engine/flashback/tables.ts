import { type FlashbackTableInfo, fault } from '@floe/domain'
import type pg from 'pg'
import databasesSql from '../sql/flashback-databases.sql'
import tablesSql from '../sql/flashback-tables.sql'

type Row = {
  oid: number
  schema: string
  name: string
  owner: string
  total: number
  kind: FlashbackTableInfo['kind']
  size_bytes: number
  rows_estimate: number | null
  why_not: string | null
}

/** Databases of an instance that somebody may have tables in. */
export async function listDatabases(client: pg.Client): Promise<string[]> {
  return (await client.query<{ name: string }>(databasesSql)).rows.map((r) => r.name)
}

/** The database that was named, else the first. */
export function chooseDatabase(databases: readonly string[], wanted: string | null): string {
  const chosen = wanted ?? databases[0] ?? 'postgres'
  if (databases.includes(chosen)) return chosen
  throw fault('database.not_found', `database "${chosen}" does not exist`, {
    detail: databases.length > 0 ? `There are ${databases.slice(0, 20).join(', ')}.` : '',
  })
}

/** Tables of the session's database, and when each was changed last as far as that is known. */
export async function listTables(
  client: pg.Client,
  asked: { search: string; limit: number },
  lastChange: (table: number) => number | null,
): Promise<{ tables: FlashbackTableInfo[]; total: number }> {
  const { rows } = await client.query<Row>(tablesSql, [asked.search, asked.limit])
  return {
    total: rows[0]?.total ?? 0,
    tables: rows.map((row) => ({
      oid: row.oid,
      schema: row.schema,
      name: row.name,
      owner: row.owner,
      kind: row.kind,
      sizeBytes: row.size_bytes,
      rowsEstimate: row.rows_estimate,
      lastChangedAt: lastChange(row.oid),
      whyNot: row.why_not,
    })),
  }
}
