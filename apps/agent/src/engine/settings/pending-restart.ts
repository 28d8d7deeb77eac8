import type pg from 'pg'
import pendingRestartSql from '../sql/pending-restart.sql'

/** The settings whose new value waits for a restart. */
export async function pendingRestart(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(pendingRestartSql)
  return rows.map(({ name }) => name)
}
