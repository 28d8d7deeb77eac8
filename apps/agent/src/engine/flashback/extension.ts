import { fault } from '@floe/domain'
import type pg from 'pg'
import { sqlState } from '../process/connection'
import availableSql from '../sql/flashback-available.sql'
import schemaOwnersSql from '../sql/schema-owners.sql'
import { type FlashbackFunctions, findFunctions, notPrepared, olderEngine } from './functions'

/** Where it goes in a database whose schema `public` strangers may create in. */
const OWN_SCHEMA = 'polar_flashback'

type Available = { version: string; standby: boolean; updatable: boolean }

/** Two sessions install it at once: unique_violation, duplicate_object, duplicate_schema. */
const raced = ['23505', '42710', '42P06']

/**
 * Sees to it that a database has flashback_table as this engine brings it. Its script runs as the agent's superuser, and
 * creates into a schema: one in which somebody else may create, too, could hold what the script would take for its own. So
 * there it is never run. What it finds is left alone otherwise, also where it is newer.
 */
export async function ensureExtension(client: pg.Client, database: string): Promise<FlashbackFunctions> {
  const before = await findFunctions(client)
  const [available] = (await client.query<Available>(availableSql, [before?.version ?? null])).rows
  if (before && !available?.updatable) return before
  if (!available) throw olderEngine('extension of that name')
  if (available.standby) {
    if (before) return before
    throw notPrepared(database)
  }
  try {
    if (before) await update(client, database, before.schema, available.version)
    else await create(client, database, available.version)
  } catch (error) {
    if (!raced.includes(sqlState(error) ?? '')) throw error
  }
  const after = await findFunctions(client)
  if (!after) throw notPrepared(database)
  return after
}

const onlySuperusersCreateIn = async (client: pg.Client, schema: string) =>
  (await client.query<{ superusers_only: boolean }>(schemaOwnersSql, [schema])).rows[0]?.superusers_only

async function update(client: pg.Client, database: string, schema: string, version: string): Promise<void> {
  if (!(await onlySuperusersCreateIn(client, schema)))
    throw fault(
      'flashback.older_extension',
      `the extension flashback_table of database "${database}" is of an earlier version`,
      {
        detail: `Roles that are no superusers may create in its schema "${schema}", so Floe does not update it.`,
        hint: 'As a superuser run ALTER EXTENSION flashback_table UPDATE there.',
      },
    )
  await client.query(`ALTER EXTENSION flashback_table UPDATE TO ${client.escapeLiteral(version)}`)
}

async function create(client: pg.Client, database: string, version: string): Promise<void> {
  await client.query('begin')
  try {
    let schema = 'public'
    if (!(await onlySuperusersCreateIn(client, schema))) {
      schema = OWN_SCHEMA
      await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`)
      if (!(await onlySuperusersCreateIn(client, schema)))
        throw fault(
          'flashback.schema_taken',
          `schema "${schema}" of database "${database}" is somebody else’s`,
          {
            detail: 'Roles that are no superusers may create in it.',
            hint: 'As a superuser run CREATE EXTENSION flashback_table in a schema of your choice.',
          },
        )
      await client.query(`GRANT USAGE ON SCHEMA ${schema} TO PUBLIC`)
    }
    await client.query(
      `CREATE EXTENSION flashback_table WITH SCHEMA ${schema} VERSION ${client.escapeLiteral(version)}`,
    )
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}
