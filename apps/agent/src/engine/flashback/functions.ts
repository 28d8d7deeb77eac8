import { type FaultError, fault } from '@floe/domain'
import type pg from 'pg'
import functionsSql from '../sql/flashback-functions.sql'

/** The extension flashback_table of a database. */
export type FlashbackFunctions = {
  version: string
  schema: string
  /** A query with each of its functions named by the schema that it is in; throws `flashback.older_engine`. */
  within: (sql: string) => string
}

type Row = { version: string; schema: string; quoted: string; functions: string[] }

/** Said where the engine that runs has no such function. */
export const olderEngine = (missing: string): FaultError =>
  fault('flashback.older_engine', 'the engine of this instance is of an earlier version', {
    detail: `Its flashback_table has no ${missing}.`,
    hint: 'Run "./floe up" on its host, then restart the instance.',
  })

/**
 * Of the database of a session; null where it has none. Strangers may have functions of the same name beside them, so a query
 * must give all arguments, each of exactly the type that the function declares: then no other fits as well.
 */
export async function findFunctions(client: pg.Client): Promise<FlashbackFunctions | null> {
  const [row] = (await client.query<Row>(functionsSql)).rows
  if (!row) return null
  const { version, schema, quoted, functions } = row
  return {
    version,
    schema,
    within: (sql) =>
      sql.replace(/\bpolar_\w+(?=\()/g, (name) => {
        if (!functions.includes(name)) throw olderEngine(`function ${name}()`)
        return `${quoted}.${name}`
      }),
  }
}

/** The same for what only reads, and therefore installs nothing; throws `flashback.not_prepared`. */
export async function requireFunctions(client: pg.Client, database: string): Promise<FlashbackFunctions> {
  const found = await findFunctions(client)
  if (found) return found
  throw notPrepared(database)
}

export const notPrepared = (database: string): FaultError =>
  fault('flashback.not_prepared', `database "${database}" lacks the extension flashback_table`, {
    hint: 'Prepare it for flashback on the primary: a preview, a flashback and "./floe flashback prepare" do that.',
  })
