import type pg from 'pg'

/** What a member that is to follow this instance has to know of it. */
export async function readUpstreamFacts(client: pg.Client) {
  const r = await client.query<{
    inRecovery: boolean
    version: string
    systemIdentifier: string
    sizeBytes: number
    tablespaces: number
  }>(`select pg_is_in_recovery() as "inRecovery", current_setting('server_version') as version,
             (select system_identifier::text from pg_control_system()) as "systemIdentifier",
             (select sum(pg_database_size(oid))::float8 from pg_database) as "sizeBytes",
             (select count(*)::int from pg_tablespace where spcname not in ('pg_default', 'pg_global')) as tablespaces`)
  return r.rows[0] as NonNullable<(typeof r.rows)[0]>
}
