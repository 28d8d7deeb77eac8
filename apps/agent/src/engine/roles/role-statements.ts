import { fault, millisecondsOf } from '@floe/domain'
import pg from 'pg'

/** Attributes of a role as CREATE ROLE and ALTER ROLE take them; what is left out is not named. */
export type RoleAttributes = {
  login?: boolean | undefined
  createDb?: boolean | undefined
  createRole?: boolean | undefined
  connectionLimit?: number | undefined
  /** null: for ever. */
  validUntil?: string | null | undefined
}

/** `LOGIN NOCREATEDB CONNECTION LIMIT 5`: for statements, and for people who read the log; no password is among it. */
export function attributeWords({
  login,
  createDb,
  createRole,
  connectionLimit,
  validUntil,
}: RoleAttributes): string[] {
  const word = (on: boolean | undefined, name: string) => (on === undefined ? [] : [on ? name : `NO${name}`])
  return [
    ...word(login, 'LOGIN'),
    ...word(createDb, 'CREATEDB'),
    ...word(createRole, 'CREATEROLE'),
    ...(connectionLimit === undefined ? [] : [`CONNECTION LIMIT ${Math.trunc(connectionLimit)}`]),
    ...(validUntil === undefined
      ? []
      : [`VALID UNTIL ${validUntil === null ? "'infinity'" : pg.escapeLiteral(isoTime(validUntil))}`]),
  ]
}

const isoTime = (time: string) => new Date(millisecondsOf(time)).toISOString()

/** The same with the verifier of a password; null takes it away. */
export function passwordWords(verifier: string | null | undefined): string[] {
  if (verifier === undefined) return []
  return [`PASSWORD ${verifier === null ? 'NULL' : pg.escapeLiteral(verifier)}`]
}

/** What PostgreSQL does not know as a verifier it takes for the password itself, and makes a verifier of that. */
export async function requireVerifierKept(
  client: pg.Client,
  role: string,
  verifier: string | null | undefined,
): Promise<void> {
  if (!verifier) return
  const same = 'select from pg_authid where rolname = $1 and rolpassword = $2'
  if ((await client.query(same, [role, verifier])).rowCount === 1) return
  throw fault('role.verifier', 'PostgreSQL does not know what was sent as the verifier of a password', {
    detail: 'Nothing was changed.',
    hint: 'Use the verifier that "./floe role" or the Terraform provider computes.',
  })
}
