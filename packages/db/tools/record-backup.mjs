#!/usr/bin/env node
// The audit row of a backup, which `./floe console backup` writes before it begins. The environment says where, as for
// migrate-deploy.mjs. Reads the row's detail from standard input.
import { text } from 'node:stream/consumers'
import { connect, environmentOfTool } from './connect.mjs'

const detail = JSON.parse(await text(process.stdin))
const client = await connect({ ...environmentOfTool(), applicationName: 'floe backup' })
try {
  await client.query(
    `INSERT INTO audit_event (actor, "actorName", action, outcome, "objectKind", "objectId", detail)
     VALUES ('launcher', 'Command line', 'control_database.back_up', 'allowed', 'control_database', 'all', $1)`,
    [JSON.stringify(detail)],
  )
} finally {
  await client.end()
}
