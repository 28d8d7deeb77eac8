import { fault, qualifiedName } from '@floe/domain'
import { z } from 'zod'
import tableThenSql from '../sql/table-then.sql'
import { askRestored, type RestoredSession } from './ask-restored'

const name = z.string().min(1).max(63)

/** A column as it was: every word of it comes from a stranger, and none is put into SQL unquoted. */
const Column = z.object({
  name,
  /** As it was declared, for people. */
  declared: z.string().max(400),
  domains: z.array(z.string().max(400)),
  arrays: z.number().int().min(0),
  schema: name,
  type: name,
  kind: z.string().length(1),
  typmod: z.number().int(),
  labels: z.array(name).nullable(),
  collation: name.nullable(),
})
export type ColumnThen = z.infer<typeof Column>

const Table = z.object({
  kind: z.string(),
  persistence: z.string(),
  /** How many columns it had, dropped ones among them. */
  attributes: z.number().int().min(0).max(1_600),
  owner: name,
  bytes: z.number().min(0),
  columns: z.array(Column).max(1_600),
})
export type TableThen = z.infer<typeof Table> & { schema: string; name: string }

/** What a table was at the moment; refuses what has no rows of its own there. */
export async function readTableThen(
  session: RestoredSession,
  { schema, name }: { schema: string; name: string },
  signal: AbortSignal,
): Promise<TableThen> {
  const words = qualifiedName(schema, name)
  const r = await askRestored(session, tableThenSql, { schema, name }, signal)
  if (r.status !== 0)
    throw fault('restore.table_not_read', `table ${words} could not be read from the restored backup`, {
      detail: `${/(?:ERROR|FATAL):\s+(.{1,500})/.exec(r.stderr)?.[1] ?? 'psql gave no reason'}.`,
    })
  if (r.stdout.trim() === '')
    throw fault('restore.no_table', `table ${words} did not exist at that moment`, {
      detail: `It is not in database "${session.database}" of the restored backup.`,
      hint: 'Name it as it was then, with its schema; quote names that are not in lower case.',
    })
  const table = Table.parse(JSON.parse(r.stdout))
  const not = (what: string) => fault('restore.not_a_table', `${words} was ${what} at that moment`)
  if (table.persistence === 'u') throw not('an unlogged table')
  if (table.persistence === 't') throw not('a temporary table')
  if (!['r', 'p', 'm'].includes(table.kind)) throw not('not a table')
  return { ...table, schema, name }
}
