#!/usr/bin/env node
// Makes a database that Floe does not run an installation's own: its id goes into the empty database, and the server gets
// the roles of web and controller. Reads {installationId, roles: {name: {verifier, connectionLimit}}} from standard input;
// passwords themselves never come here. In one transaction, and safe to run again; the environment says which database,
// as its owner, who needs no more than CREATEROLE.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect, runAsTool } from './connect.mjs'
import { findClaim, roleMark } from './inspect-database.mjs'

const CLAIM_LOCK = 72_707_371
const claimMigration = join(
  import.meta.dirname,
  '../prisma/migrations/20261124100000_installation/migration.sql',
)

/**
 * Claims the database, or finds that it is claimed. Throws where it is another installation's or holds anything else, and
 * where a role of that name was made for somebody else.
 *
 * @param {import('./connect.mjs').Environment & { installationId: string,
 *   roles: Record<string, { verifier: string, connectionLimit: number }> }} options
 * @returns {Promise<void>}
 */
export async function claimDatabase({ installationId, roles, ...environment }) {
  const client = await connect({ ...environment, applicationName: 'floe claim' })
  try {
    await client.query('BEGIN')
    await client.query('SELECT pg_advisory_xact_lock($1)', [CLAIM_LOCK])
    await client.query('SET LOCAL search_path TO public')
    const found = await findClaim(client)
    if (found.installationId === null) {
      if (found.relations.length > 0)
        throw new Error(`the database is not empty: it has ${found.relations.join(', ')}`)
      await client.query(await readFile(claimMigration, 'utf8'))
      await client.query('INSERT INTO installation ("installationId") VALUES ($1)', [installationId])
    } else if (found.installationId !== installationId)
      throw new Error(`the database is that of installation ${found.installationId}`)
    const mark = roleMark(installationId)
    for (const [name, { verifier, connectionLimit }] of Object.entries(roles)) {
      const role = client.escapeIdentifier(name)
      const there = found.roles.find((r) => r.name === name)
      if (there === undefined) {
        await client.query(`CREATE ROLE ${role} LOGIN`)
        await client.query(`COMMENT ON ROLE ${role} IS ${client.escapeLiteral(mark)}`)
      } else if (there.mark !== mark) throw new Error(`role "${name}" was not made for this installation`)
      await client.query(
        `ALTER ROLE ${role} LOGIN CONNECTION LIMIT ${Number(connectionLimit)} PASSWORD ${client.escapeLiteral(verifier)}`,
      )
    }
    await client.query('COMMIT')
  } finally {
    await client.end()
  }
}

await runAsTool(import.meta.filename, async (environment) => {
  await claimDatabase({ ...environment, ...JSON.parse(await text(process.stdin)) })
  console.log('claimed')
})
