import extensionSchemasSql from './extension-schemas.sql'

/** Asks something of the instance; null while there is no connection. */
export type AskRows = (sql: string) => Promise<Record<string, unknown>[] | null>

/**
 * Names the views of an extension with their schema in a query, because the agent's search path holds only the catalog, for
 * safety. Null for an engine, or a database, without the extension.
 */
export async function viewsOf(ask: AskRows, extension: string): Promise<((sql: string) => string) | null> {
  const schema = (await ask(extensionSchemasSql))?.find((row) => row.extension === extension)?.schema
  if (typeof schema !== 'string') return null
  return (sql) => sql.replace(/(?<=from )polar_\w+/g, (view) => `${schema}.${view}`)
}
