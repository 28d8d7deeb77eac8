import { z } from 'zod'

/** Where an instance answers and as whom; never a password. */
export const ConnectionTarget = z.object({
  host: z.string(),
  port: z.number().int(),
  user: z.string(),
  database: z.string(),
})
export type ConnectionTarget = z.infer<typeof ConnectionTarget>

/** The same connection in every form people paste. */
export const ConnectionForms = z.object({
  uri: z.string(),
  keywords: z.string(),
  psql: z.string(),
  jdbc: z.string(),
  /** Lines for a shell: PGHOST, PGPORT, … */
  environment: z.string(),
})
export type ConnectionForms = z.infer<typeof ConnectionForms>

const keyword = (value: string) =>
  /^[\w.:/-]+$/.test(value) ? value : `'${value.replace(/[\\']/g, (c) => `\\${c}`)}'`
const shellWord = (value: string) => `'${value.replaceAll("'", "'\\''")}'`

/** Writes a connection in every form; without a password they leave it to be asked for. */
export function connectionForms(target: ConnectionTarget, password?: string | null): ConnectionForms {
  const { port, user, database } = target
  const e = encodeURIComponent
  const host = target.host.includes(':') ? `[${target.host}]` : target.host
  const secret = password ? `:${e(password)}` : ''
  const uri = `postgresql://${e(user)}${secret}@${host}:${port}/${e(database)}`
  const keywords = [
    `host=${keyword(target.host)}`,
    `port=${port}`,
    `user=${keyword(user)}`,
    ...(password ? [`password=${keyword(password)}`] : []),
    `dbname=${keyword(database)}`,
  ].join(' ')
  const jdbcPassword = password ? `&password=${e(password)}` : ''
  const variables: [string, string][] = [
    ['PGHOST', target.host],
    ['PGPORT', String(port)],
    ['PGUSER', user],
    ...(password ? ([['PGPASSWORD', password]] as [string, string][]) : []),
    ['PGDATABASE', database],
  ]
  return {
    uri,
    keywords,
    psql: `psql ${shellWord(uri)}`,
    jdbc: `jdbc:postgresql://${host}:${port}/${e(database)}?user=${e(user)}${jdbcPassword}`,
    environment: variables.map(([name, value]) => `export ${name}=${shellWord(value)}`).join('\n'),
  }
}
