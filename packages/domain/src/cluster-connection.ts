import { z } from 'zod'
import {
  goConnect,
  keywordValue,
  nodePostgresTls,
  pythonConnect,
  scriptString,
  TLS_PARAMETERS,
} from './connection'

/** One connection that finds its instance automatically, in every form people paste. */
export const ClusterConnectionForms = z.object({
  uri: z.string(),
  keywords: z.string(),
  psql: z.string(),
  jdbc: z.string(),
  nodePostgres: z.string(),
  go: z.string(),
  python: z.string(),
})
export type ClusterConnectionForms = z.infer<typeof ClusterConnectionForms>

export type ClusterTarget = {
  /** Every member, in any order: clients try them until one is what they want. */
  hosts: readonly { host: string; port: number }[]
  user: string
  database: string
  /** Every member asks clients on other hosts for TLS. */
  tls?: boolean
}

const shellWord = (value: string) => `'${value.replaceAll("'", "'\\''")}'`
const inBrackets = (host: string) => (host.includes(':') ? `[${host}]` : host)

/**
 * The connection that always reaches the primary (`primary`), or one for reads that prefers a standby (`reads`), without a
 * password. libpq, pgx and pgjdbc find the instance by themselves; node-postgres takes one host, so its form tries each.
 * Every form for reads takes the primary where no standby is up.
 */
export function clusterConnectionForms(
  target: ClusterTarget,
  purpose: 'primary' | 'reads',
): ClusterConnectionForms {
  const { hosts, user, database, tls = false } = target
  const e = encodeURIComponent
  const addresses = hosts.map((h) => `${inBrackets(h.host)}:${h.port}`).join(',')
  const wanted =
    purpose === 'primary' ? 'target_session_attrs=read-write' : 'target_session_attrs=prefer-standby'
  const attributes = purpose === 'primary' ? [wanted] : [wanted, 'load_balance_hosts=random']
  const address = `postgresql://${e(user)}@${addresses}/${e(database)}`
  const sslmode = tls ? [TLS_PARAMETERS[0]] : []
  const uri = `${address}?${[...attributes, ...sslmode].join('&')}`
  const keywords = [
    `host=${hosts.map((h) => h.host).join(',')}`,
    `port=${hosts.map((h) => h.port).join(',')}`,
    `user=${keywordValue(user)}`,
    `dbname=${keywordValue(database)}`,
    ...attributes,
    ...(tls ? TLS_PARAMETERS : []),
  ].join(' ')
  const serverType =
    purpose === 'primary'
      ? 'targetServerType=primary'
      : 'targetServerType=preferSecondary&loadBalanceHosts=true'
  return {
    uri,
    keywords,
    psql: `psql ${shellWord(`${address}?${[...attributes, ...(tls ? TLS_PARAMETERS : [])].join('&')}`)}`,
    jdbc: `jdbc:postgresql://${addresses}/${e(database)}?user=${e(user)}&${[serverType, ...sslmode].join('&')}`,
    nodePostgres: nodePostgres(target, purpose),
    // pgx knows target_session_attrs, but no load_balance_hosts
    go: goConnect(`${address}?${[wanted, ...sslmode].join('&')}`),
    python: pythonConnect(keywords),
  }
}

function nodePostgres(
  { hosts, user, database, tls = false }: ClusterTarget,
  purpose: 'primary' | 'reads',
): string {
  const list = hosts.map((h) => `{ host: ${scriptString(h.host)}, port: ${h.port} }`).join(', ')
  const start = `    const client = new pg.Client({ ...address, user: ${scriptString(user)}, database: ${scriptString(database)}${nodePostgresTls(tls)} })
    try {
      await client.connect()
      const { standby } = (await client.query('select pg_is_in_recovery() as standby')).rows[0]`
  if (purpose === 'primary')
    return `import pg from 'pg'

// node-postgres takes one host: try each until one is the primary
async function connect() {
  for (const address of [${list}]) {
${start}
      if (!standby) return client
    } catch {}
    await client.end().catch(() => {})
  }
  throw new Error('the primary does not answer')
}`
  return `import pg from 'pg'

// node-postgres takes one host: try each until one is a standby; the primary where none is up
async function connect() {
  let primary
  for (const address of [${list}]) {
${start}
      if (standby) {
        primary?.end().catch(() => {})
        return client
      }
      if (!primary) {
        primary = client
        continue
      }
    } catch {}
    await client.end().catch(() => {})
  }
  if (primary) return primary
  throw new Error('no member answers')
}`
}
