#!/usr/bin/env node
// What `./floe up` has to know of a database that Floe does not run before it changes anything there, and what `./floe
// status` asks: one JSON object, `{facts}`, or `{error: {code, message}}` with exit status 1 where it could not be reached.
// The environment says which database, and as whom (connect.mjs). Changes nothing. With the word "login" it only logs in,
// as web and controller may, and answers `{}`.
import { connect, runAsTool } from './connect.mjs'
import { roleNames } from './grants.mjs'

const facts = `SELECT current_setting('server_version') AS "serverVersion",
  current_setting('server_version_num')::int AS "serverVersionNumber",
  current_database() AS database, current_user AS role, r.rolname = current_user AS "ownsDatabase", r.rolname AS owner,
  me.rolsuper OR me.rolcreaterole AS "createsRoles",
  pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool AS "readOnly",
  pg_encoding_to_char(d.encoding) AS encoding,
  coalesce((SELECT s.ssl FROM pg_stat_ssl s WHERE s.pid = pg_backend_pid()), false) AS encrypted
 FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba, pg_roles me
 WHERE d.datname = current_database() AND me.rolname = current_user`

// those of extensions are there before anybody made a table
const relations = `SELECT format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
 ORDER BY c.oid LIMIT 4`

const claimTable = `SELECT FROM pg_attribute WHERE attrelid = to_regclass('public.installation') AND attname = 'installationId'`

/** What a role says of whom it was made for. */
export const roleMark = (installationId) => `Floe installation ${installationId}`

/**
 * Whose the database is: the id of an installation, or null; what else is in it, where it is nobody's; and which of the
 * roles of web and controller the server has, with whom each was made for.
 *
 * @param {import('pg').Client} client
 * @returns {Promise<{ installationId: string | null, relations: string[], roles: { name: string, mark: string | null }[] }>}
 */
export async function findClaim(client) {
  const { rowCount } = await client.query(claimTable)
  const claimed = rowCount
    ? await client.query('SELECT "installationId" AS id FROM public.installation')
    : null
  const { rows: there } = await client.query(relations)
  const { rows: roles } = await client.query(
    `SELECT r.rolname AS name, shobj_description(r.oid, 'pg_authid') AS mark FROM pg_roles r
      WHERE r.rolname = ANY ($1) ORDER BY 1`,
    [Object.values(roleNames)],
  )
  return { installationId: claimed?.rows[0]?.id ?? null, relations: there.map((r) => r.name), roles }
}

await runAsTool(import.meta.filename, async (environment) => {
  try {
    const client = await connect({ ...environment, applicationName: 'floe inspection' })
    try {
      if (process.argv[2] === 'login') return console.log('{}')
      const { rows } = await client.query(facts)
      console.log(JSON.stringify({ facts: { ...rows[0], ...(await findClaim(client)) } }))
    } finally {
      await client.end()
    }
  } catch (error) {
    const first = error.errors?.[0] ?? error
    console.log(JSON.stringify({ error: { code: first.code ?? '', message: first.message } }))
    process.exitCode = 1
  }
})
