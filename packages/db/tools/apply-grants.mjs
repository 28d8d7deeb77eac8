#!/usr/bin/env node
// Gives the roles of web and controller exactly the privileges that grants.mjs names, and takes every other one from them
// and from PUBLIC. Run after each deploy of migrations, with the same environment (connect.mjs). The two roles have to be there; they get no privilege by any other way, or it is refused.
import { connect, runAsTool } from './connect.mjs'
import { functions, roleNames, schemas, sequences, tables } from './grants.mjs'

const GRANTS_LOCK = 72_707_370
const roles = Object.values(roleNames)

/**
 * Applies the grants in one transaction, whatever was granted before; others see the old ones until it commits.
 *
 * @param {import('./connect.mjs').Environment} options
 * @returns {Promise<void>}
 */
export async function applyGrants({ connectionString, owner, password }) {
  const client = await connect({ connectionString, owner, password, applicationName: 'floe grants' })
  try {
    await client.query('BEGIN')
    await client.query('SELECT pg_advisory_xact_lock($1)', [GRANTS_LOCK])
    await refuseOtherPowers(client)
    const { rows } = await client.query('SELECT current_database() AS name')
    for (const statement of grantStatements(rows[0].name)) await client.query(statement)
    await client.query('COMMIT')
  } finally {
    await client.end()
  }
}

/**
 * A role that somebody else made, or that was given more, would have rights that no grant here says. An owner that is no
 * superuser administers the roles that it made, by a membership that PostgreSQL itself grants: it owns every object anyway.
 */
async function refuseOtherPowers(client) {
  const { rows } = await client.query(
    `SELECT r.rolname, r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls AS powerful,
            EXISTS (SELECT FROM pg_auth_members m WHERE m.member = r.oid) AS member,
            EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles o ON o.oid = m.member
                     WHERE m.roleid = r.oid AND o.rolname <> current_user) AS granted,
            EXISTS (SELECT FROM pg_shdepend d WHERE d.refobjid = r.oid AND d.refclassid = 'pg_authid'::regclass
                       AND d.deptype = 'o') AS owner
       FROM pg_roles r WHERE r.rolname = ANY ($1)`,
    [roles],
  )
  for (const name of roles) {
    const role = rows.find((r) => r.rolname === name)
    if (!role) throw new Error(`role "${name}" does not exist`)
    const why = role.powerful
      ? 'has an attribute like SUPERUSER or CREATEROLE'
      : role.member
        ? 'is a member of another role'
        : role.granted
          ? 'was granted to another role'
          : role.owner
            ? 'owns objects'
            : undefined
    if (why)
      throw new Error(
        `role "${name}" ${why}, so that its privileges are not those of the console; drop the role, or take that from it`,
      )
  }
}

/**
 * The statements, in order: everything is taken first.
 *
 * @param {string} database
 * @returns {string[]}
 */
export function grantStatements(database) {
  const from = `FROM PUBLIC, ${roles.join(', ')}`
  const inSchemas = `IN SCHEMA ${schemas.join(', ')}`
  const statements = [
    `REVOKE ALL ON DATABASE ${quoted(database)} ${from}`,
    `REVOKE ALL ON SCHEMA ${schemas.join(', ')} ${from}`,
    ...['TABLES', 'SEQUENCES', 'ROUTINES'].map((kind) => `REVOKE ALL ON ALL ${kind} ${inSchemas} ${from}`),
    // of what later migrations make, PUBLIC gets nothing even before the next run
    'ALTER DEFAULT PRIVILEGES REVOKE ALL ON ROUTINES FROM PUBLIC',
    `GRANT CONNECT ON DATABASE ${quoted(database)} TO ${roles.join(', ')}`,
    `GRANT USAGE ON SCHEMA ${schemas.join(', ')} TO ${roles.join(', ')}`,
  ]
  for (const [table, grants] of Object.entries(tables))
    for (const [who, grant] of Object.entries(grants)) {
      const privileges = Object.entries(grant).map(([privilege, columns]) =>
        columns === true
          ? privilege.toUpperCase()
          : `${privilege.toUpperCase()} (${columns.map(quoted).join(', ')})`,
      )
      statements.push(`GRANT ${privileges.join(', ')} ON ${qualified(table)} TO ${roleNames[who]}`)
    }
  for (const [sequence, who] of Object.entries(sequences))
    statements.push(`GRANT USAGE ON SEQUENCE ${qualified(sequence)} TO ${namesOf(who)}`)
  for (const [signature, who] of Object.entries(functions)) {
    const [name, parameters] = signature.split('(')
    statements.push(`GRANT EXECUTE ON FUNCTION ${qualified(name)}(${parameters} TO ${namesOf(who)}`)
  }
  return statements
}

const namesOf = (who) => who.map((name) => roleNames[name]).join(', ')
const quoted = (name) => `"${name.replaceAll('"', '""')}"`
const qualified = (name) => (name.includes('.') ? name : `public.${name}`).split('.').map(quoted).join('.')

await runAsTool(import.meta.filename, async (environment) => {
  await applyGrants(environment)
  console.log('granted')
})
