import { type FlashbackMade, fault } from '@floe/domain'
import type pg from 'pg'
import madeTableSql from '../../engine/sql/flashback-made.sql'

/** The table that a flashback has just made, by its number. */
export async function madeTable(
  client: pg.Client,
  made: { result: number; rows: number } | undefined,
): Promise<FlashbackMade> {
  const [row] = made
    ? (await client.query<{ name: string; bytes: number }>(madeTableSql, [made.result])).rows
    : []
  if (!made || !row) throw fault('flashback.bad_answer', 'the engine made no table')
  return { result: made.result, resultName: row.name, rows: made.rows, bytes: row.bytes }
}
