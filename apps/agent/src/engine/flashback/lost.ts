import { FlashbackLost } from '@floe/domain'
import type pg from 'pg'
import { z } from 'zod'
import lostSql from '../sql/flashback-lost.sql'
import { requireFunctions } from './functions'

/** Tables of a database that can be had back although they were dropped, truncated or rewritten. */
export async function listLost(client: pg.Client, database: string): Promise<FlashbackLost[]> {
  const functions = await requireFunctions(client, database)
  const { rows } = await client.query(functions.within(lostSql))
  return z.array(FlashbackLost).parse(
    rows.map(({ name, size_bytes, restorable_since, ...row }) => ({
      ...row,
      tableName: name,
      sizeBytes: size_bytes,
      restorableSince: restorable_since,
    })),
  )
}
