import { z } from 'zod'
import type { Fault } from './fault'
import { FlashbackTime } from './flashback'
import { MemberLogin } from './member-login'

/** The role that the agent connects as: a superuser of each instance. */
export const AGENT_ROLE = 'floe'

/** PostgreSQL cuts a longer name, and the role would have another one. */
const NAME_BYTES_MAX = 63

/** Bytes of a text in UTF-8, which is what every instance stores names in. */
function utf8Bytes(text: string): number {
  let bytes = 0
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x1_0000 ? 3 : 4
  }
  return bytes
}

/** C0 and C1 controls and DEL would move a terminal's cursor; halves of surrogate pairs are no characters. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}]/u

/** Name of a database role, exactly as PostgreSQL stores it: nothing is folded to lower case. */
export const RoleName = z
  .string()
  .min(1, 'must not be empty')
  .max(NAME_BYTES_MAX, `must have at most ${NAME_BYTES_MAX} bytes`)
  .refine((name) => utf8Bytes(name) <= NAME_BYTES_MAX, `must have at most ${NAME_BYTES_MAX} bytes`)
  .refine((name) => !UNPRINTABLE.test(name), 'must not contain control characters')

/** The role of which members of earlier versions had their right to read pages. Nothing is granted to it any more. */
export const FORMER_READERS = 'page_repair'

/** Whether Floe made the role, or would: its agent or a member of a cluster logs in as it. */
export const isRoleOfFloe = (name: string): boolean =>
  name === AGENT_ROLE || name === FORMER_READERS || MemberLogin.safeParse(name).success

/** Why Floe neither creates, changes nor drops a role of this name, nor makes another one its member; null where it may. */
export function whyRoleReserved(name: string): Fault | null {
  if (isRoleOfFloe(name))
    return {
      code: 'role.of_floe',
      message: `role "${name}" belongs to Floe`,
      detail: 'Its agent or a member of a cluster logs in as a role of this name.',
    }
  if (/^pg_/.test(name) || name === 'public' || name === 'none')
    return {
      code: 'role.reserved',
      message: `role name "${name}" is reserved`,
      detail: 'PostgreSQL predefines roles whose names begin with "pg_"; "public" and "none" are no roles.',
    }
  return null
}

/**
 * Predefined roles whose members reach files and programs of the server's host: what PostgreSQL's documentation says can be used
 * to gain the access of a superuser.
 */
export const ROLES_OF_THE_HOST = [
  'pg_execute_server_program',
  'pg_read_server_files',
  'pg_write_server_files',
] as const

/** May be granted although its name is reserved: a predefined role that does not reach the host. */
export const isGrantable = (name: string): boolean =>
  whyRoleReserved(name) === null ||
  (name.startsWith('pg_') && !ROLES_OF_THE_HOST.some((reaching) => reaching === name))

/** Sessions at once; -1: as many as there are connections. */
export const ConnectionLimit = z.number().int().min(-1).max(2_147_483_647)

/** More roles are neither granted nor revoked at once. */
const GRANTS_MAX = 50
const Memberships = z.array(RoleName).max(GRANTS_MAX)

/** What a new role is to be, as CREATE ROLE has it; what is left out is PostgreSQL's default. */
export const roleToCreate = {
  role: RoleName.meta({ title: 'Role' }),
  login: z.boolean().default(false).meta({ title: 'LOGIN' }),
  createDb: z.boolean().default(false).meta({ title: 'CREATEDB' }),
  createRole: z.boolean().default(false).meta({ title: 'CREATEROLE' }),
  connectionLimit: ConnectionLimit.default(-1).meta({ title: 'CONNECTION LIMIT' }),
  /** Until when its password is accepted; null: for ever. */
  validUntil: FlashbackTime.nullable().default(null).meta({ title: 'VALID UNTIL' }),
  memberOf: Memberships.default([]).meta({ title: 'Member of' }),
}

/** What of a role is to change; what is left out stays. */
export const roleToChange = {
  role: RoleName.meta({ title: 'Role' }),
  login: z.boolean().optional().meta({ title: 'LOGIN' }),
  createDb: z.boolean().optional().meta({ title: 'CREATEDB' }),
  createRole: z.boolean().optional().meta({ title: 'CREATEROLE' }),
  connectionLimit: ConnectionLimit.optional().meta({ title: 'CONNECTION LIMIT' }),
  validUntil: FlashbackTime.nullable().optional().meta({ title: 'VALID UNTIL' }),
  grant: Memberships.default([]).meta({ title: 'Granted' }),
  revoke: Memberships.default([]).meta({ title: 'Revoked' }),
}

/** Why Floe leaves a role as it is: it is Floe's own, or it is a superuser or could become one. */
export const RoleKept = z.enum(['floe', 'superuser'])
export type RoleKept = z.infer<typeof RoleKept>

/** A database role of an instance, at the moment of asking. Names are whatever somebody has given. */
export const DatabaseRole = z.object({
  name: z.string().max(NAME_BYTES_MAX),
  login: z.boolean(),
  createDb: z.boolean(),
  createRole: z.boolean(),
  superuser: z.boolean(),
  replication: z.boolean(),
  bypassRls: z.boolean(),
  connectionLimit: z.number().int(),
  /** ms since the epoch; null: its password is accepted for ever. */
  validUntil: z.number().nullable(),
  hasPassword: z.boolean(),
  /** Roles that were granted to it directly. */
  memberOf: z.array(z.string().max(NAME_BYTES_MAX)),
  kept: RoleKept.nullable(),
})
export type DatabaseRole = z.infer<typeof DatabaseRole>

/** Parts of inputs of operations that hold verifiers of passwords: nothing that is shown or audited has them. */
export const verifierParts = ['ownerPasswordVerifier', 'passwordVerifier'] as const
