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
  nodePostgres: z.string(),
  go: z.string(),
  python: z.string(),
  /** Lines for a shell: PGHOST, PGPORT, … */
  environment: z.string(),
})
export type ConnectionForms = z.infer<typeof ConnectionForms>

/** A value of libpq's keyword form, quoted where it has to be. */
export const keywordValue = (value: string) =>
  /^[\w.:/-]+$/.test(value) ? value : `'${value.replace(/[\\']/g, (c) => `\\${c}`)}'`
/** A line of a program that connects; JSON's strings are strings of Go and Python too. */
export const goConnect = (uri: string) => `conn, err := pgx.Connect(ctx, ${JSON.stringify(uri)})`
export const pythonConnect = (keywords: string) => `connection = psycopg.connect(${JSON.stringify(keywords)})`
/** A string as JavaScript writes it. */
export const scriptString = (value: string) => `'${value.replace(/[\\']/g, (c) => `\\${c}`)}'`
const shellWord = (value: string) => `'${value.replaceAll("'", "'\\''")}'`

/**
 * What libpq takes for TLS with proof that the server knows the password's verifier for this very certificate: an
 * instance's own certificate is vouched for by nobody. Drivers that know no channel binding get sslmode alone.
 */
export const TLS_PARAMETERS = ['sslmode=require', 'channel_binding=require'] as const
const TLS_OF_NODE_POSTGRES = 'ssl: { rejectUnauthorized: false }, enableChannelBinding: true'
/** What node-postgres is given besides, as the members of an object. */
export const nodePostgresTls = (tls: boolean) => (tls ? `, ${TLS_OF_NODE_POSTGRES}` : '')

/** What a connection says of TLS: it is required, nothing is said, or it is not to be used although the server has it. */
export type TlsWanted = boolean | 'disabled'
const TLS_DISABLED = 'sslmode=disable'

/** Writes a connection in every form, with TLS where asked; without a password they leave it to be asked for. */
export function connectionForms(
  target: ConnectionTarget,
  password?: string | null,
  tls: TlsWanted = false,
): ConnectionForms {
  const required = tls === true
  // every parameter for libpq; of other drivers some know sslmode only
  const parameters: readonly string[] = required ? TLS_PARAMETERS : tls ? [TLS_DISABLED] : []
  const [mode] = parameters
  const { port, user, database } = target
  const e = encodeURIComponent
  const host = target.host.includes(':') ? `[${target.host}]` : target.host
  const secret = password ? `:${e(password)}` : ''
  const address = `postgresql://${e(user)}${secret}@${host}:${port}/${e(database)}`
  const uri = mode ? `${address}?${mode}` : address
  const keywords = [
    `host=${keywordValue(target.host)}`,
    `port=${port}`,
    `user=${keywordValue(user)}`,
    ...(password ? [`password=${keywordValue(password)}`] : []),
    `dbname=${keywordValue(database)}`,
    ...parameters,
  ].join(' ')
  const jdbcPassword = password ? `&password=${e(password)}` : ''
  const variables: [string, string][] = [
    ['PGHOST', target.host],
    ['PGPORT', String(port)],
    ['PGUSER', user],
    ...(password ? ([['PGPASSWORD', password]] as [string, string][]) : []),
    ['PGDATABASE', database],
    ...(required
      ? ([
          ['PGSSLMODE', 'require'],
          ['PGCHANNELBINDING', 'require'],
        ] as [string, string][])
      : tls
        ? ([['PGSSLMODE', 'disable']] as [string, string][])
        : []),
  ]
  // by its parts: the driver does not take an IPv6 address out of a URI
  const script = [
    `host: ${scriptString(target.host)}`,
    `port: ${port}`,
    `user: ${scriptString(user)}`,
    ...(password ? [`password: ${scriptString(password)}`] : []),
    `database: ${scriptString(database)}`,
  ]
  return {
    uri,
    keywords,
    psql: `psql ${shellWord(mode ? `${address}?${parameters.join('&')}` : address)}`,
    jdbc: `jdbc:postgresql://${host}:${port}/${e(database)}?user=${e(user)}${jdbcPassword}${mode ? `&${mode}` : ''}`,
    nodePostgres: `const client = new pg.Client({ ${script.join(', ')}${nodePostgresTls(required)} })`,
    go: goConnect(uri),
    python: pythonConnect(keywords),
    environment: variables.map(([name, value]) => `export ${name}=${shellWord(value)}`).join('\n'),
  }
}
