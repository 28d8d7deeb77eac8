#!/usr/bin/env node
// What `./floe up` puts into the control database: the hash of its command line's token and, while there is no owner, the
// hash of a fresh set-up link. The environment says where, as for migrate-deploy.mjs. Reads
// {commandLineTokenHash, setupTokenHash, setupHours} from standard input, answers {ownerExists} on standard output. Hashes
// are sha256 in hexadecimal; the tokens themselves never come here.
import { randomUUID } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { connect, environmentOfTool } from './connect.mjs'

const { commandLineTokenHash, setupTokenHash, setupHours } = JSON.parse(await text(process.stdin))
const client = await connect({ ...environmentOfTool(), applicationName: 'floe tokens' })
try {
  await client.query('BEGIN')
  // a token that was replaced in the secrets must not stay good
  await client.query(
    `UPDATE api_token SET "revokedAt" = now()
      WHERE "userId" IS NULL AND role IS NULL AND "tokenHash" <> $1 AND "revokedAt" IS NULL`,
    [commandLineTokenHash],
  )
  await client.query(
    `INSERT INTO api_token (id, name, "tokenHash") VALUES ($1, 'command line of this host', $2)
     ON CONFLICT ("tokenHash") DO UPDATE SET "revokedAt" = NULL`,
    [randomUUID(), commandLineTokenHash],
  )
  await client.query(`DELETE FROM setup_link WHERE "usedAt" IS NULL AND "expiresAt" < now()`)
  const { rows } = await client.query(
    `SELECT EXISTS (SELECT FROM member WHERE role = 'owner') AS "ownerExists"`,
  )
  const { ownerExists } = rows[0]
  if (!ownerExists)
    await client.query(
      `INSERT INTO setup_link (id, "tokenHash", "expiresAt") VALUES ($1, $2, now() + make_interval(hours => $3))`,
      [randomUUID(), setupTokenHash, setupHours],
    )
  await client.query('COMMIT')
  console.log(JSON.stringify({ ownerExists }))
} finally {
  await client.end()
}
