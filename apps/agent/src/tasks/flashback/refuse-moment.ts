import { fault } from '@floe/domain'
import type pg from 'pg'
import type { FlashbackFunctions } from '../../engine/flashback/functions'
import checkSql from '../../engine/sql/flashback-check.sql'

type Check = { possible: boolean; reason: string | null; hint: string | null; nearest: string | null }

/** Refuses a moment that the window does not reach, with the nearest one that works. */
export async function refuseMoment(
  client: pg.Client,
  functions: FlashbackFunctions,
  { table, at }: { table: number; at: string },
): Promise<void> {
  const [check] = (await client.query<Check>(functions.within(checkSql), [table, at])).rows
  if (check?.possible !== false) return
  throw fault('flashback.not_possible', check.reason ?? 'the table cannot be read as it was at that moment', {
    detail: check.nearest ? `The nearest moment that works is ${check.nearest}.` : 'No moment works.',
    ...(check.hint ? { hint: check.hint } : {}),
  })
}
