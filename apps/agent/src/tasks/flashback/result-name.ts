import type pg from 'pg'
import freeNameSql from '../../engine/sql/free-result-name.sql'

/** The name for a result that nobody has named: the engine's own, or the next that is free. */
export async function freeResultName(client: pg.Client, table: number): Promise<string> {
  const [row] = (await client.query<{ name: string }>(freeNameSql, [table])).rows
  return row?.name ?? `polar_flashback_${table}`
}
