import { type FlashbackResult, fault } from '@floe/domain'
import type pg from 'pg'
import resultsSql from '../sql/flashback-results.sql'
import { type FlashbackFunctions, findFunctions } from './functions'

type Row = {
  result: number
  schema_name: string
  result_name: string
  owner: string
  relation: number | null
  relation_schema: string
  relation_name: string
  at: number | null
  /** Null while somebody has it locked. */
  size_bytes: number | null
}

/** A result and the table whose rows it has, as the engine knows them. */
export type ResultRow = FlashbackResult & { schema: string; name: string }

const known = ({
  schema_name,
  result_name,
  relation,
  relation_schema,
  relation_name,
  ...row
}: Row): ResultRow => ({
  result: row.result,
  resultName: `${schema_name}.${result_name}`,
  table: relation || null,
  tableName: `${relation_schema}.${relation_name}`,
  owner: row.owner,
  at: row.at,
  sizeBytes: row.size_bytes,
  schema: schema_name,
  name: result_name,
})

/**
 * A dropped table that was given back under its own name, also in another schema, is that table again: nobody compares it, or
 * drops it as what a flashback has left.
 */
const isGivenBack = (row: Row) => !row.relation && row.relation_name === row.result_name

const resultsOf = async (client: pg.Client, functions: FlashbackFunctions): Promise<ResultRow[]> =>
  (await client.query<Row>(functions.within(resultsSql))).rows.filter((r) => !isGivenBack(r)).map(known)

/** Tables that flashbacks made in a database; none where the extension never was. */
export async function listResults(client: pg.Client): Promise<ResultRow[]> {
  const functions = await findFunctions(client)
  return functions ? resultsOf(client, functions) : []
}

/**
 * The result that a person named. Its comment says whose rows it has, and its owner may have written another: both names have to
 * be those that the person saw. Throws `flashback.result_not_found` or `flashback.other_table`.
 */
export async function requireResult(
  client: pg.Client,
  functions: FlashbackFunctions,
  asked: { result: number; resultName: string; tableName?: string },
): Promise<ResultRow> {
  const all = await resultsOf(client, functions)
  const found = all.find((r) => r.result === asked.result)
  if (!found)
    throw fault(
      'flashback.result_not_found',
      `table "${asked.resultName}" is not the result of a flashback`,
      {
        detail: 'It was dropped, or is another table now.',
        hint: 'Look at the list of results.',
      },
    )
  if (found.resultName !== asked.resultName)
    throw fault('flashback.other_table', `result "${asked.resultName}" has another name now`, {
      detail: `It is "${found.resultName}".`,
      hint: 'Look at the list of results, and order it again.',
    })
  if (asked.tableName !== undefined && found.tableName !== asked.tableName)
    throw fault(
      'flashback.other_table',
      `result "${asked.resultName}" is not of table "${asked.tableName}"`,
      {
        detail: `It is of "${found.tableName}".`,
        hint: 'Look at the list of results, and order it again.',
      },
    )
  return found
}

/** The number of the table whose rows a result has; throws `flashback.table_not_found`. */
export function tableOf({ table, tableName }: ResultRow): number {
  if (table === null)
    throw fault('flashback.table_not_found', `table "${tableName}" is not there any more`, {
      hint: 'The result has its rows; rename it, or insert them into another table.',
    })
  return table
}
