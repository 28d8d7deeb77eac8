#!/usr/bin/env node
// What a control database needs that was just loaded from a backup, in one transaction: everything in it is in doubt until a
// person has decided (restored_record), nobody is signed in, and no link or token that was on its way is good any more. The
// environment says where, as for migrate-deploy.mjs. Reads {restoreId, backupAt} from standard input; `restoreId` names this
// restore, so that it is seen later that it was done.
import { text } from 'node:stream/consumers'
import { connect, environmentOfTool } from './connect.mjs'

const { restoreId, backupAt } = JSON.parse(await text(process.stdin))
const client = await connect({ ...environmentOfTool(), applicationName: 'floe restore' })
try {
  await client.query('BEGIN')
  // an earlier restore that nobody decided on: this one takes its place
  await client.query(`DELETE FROM restored_record WHERE "clusterId" IS NULL AND "settledAt" IS NULL`)
  await client.query(`INSERT INTO restored_record (id, evidence) VALUES ($1, $2)`, [
    restoreId,
    JSON.stringify({ kind: 'restored', backupAt }),
  ])
  await client.query('DELETE FROM session')
  await client.query('DELETE FROM setup_link WHERE "usedAt" IS NULL')
  await client.query(
    'UPDATE host_enrolment SET "withdrawnAt" = now() WHERE "signedAt" IS NULL AND "withdrawnAt" IS NULL',
  )
  // what was due before the backup is news no more
  await client.query(
    'UPDATE webhook_delivery SET "givenUpAt" = now() WHERE "deliveredAt" IS NULL AND "givenUpAt" IS NULL',
  )
  await client.query('UPDATE lease SET "expiresAt" = now()')
  await client.query(
    'UPDATE operation SET "leaseExpiresAt" = now() WHERE "leaseExpiresAt" IS NOT NULL AND "endedAt" IS NULL',
  )
  await client.query(
    `INSERT INTO audit_event (actor, "actorName", action, outcome, "objectKind", "objectId", detail)
     VALUES ('launcher', 'Command line', 'control_database.restore', 'allowed', 'control_database', 'all', $1)`,
    [JSON.stringify({ restoreId, backupAt })],
  )
  await client.query('COMMIT')
} finally {
  await client.end()
}
