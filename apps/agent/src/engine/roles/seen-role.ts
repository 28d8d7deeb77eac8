import {
  DatabaseRole,
  FaultError,
  fault,
  isGrantable,
  isRoleOfFloe,
  ROLES_OF_THE_HOST,
  whyRoleReserved,
} from '@floe/domain'
import pg from 'pg'
import rolesSql from '../sql/database-roles.sql'

type Row = Omit<DatabaseRole, 'kept'> & { oid: number; mayMore: boolean }

/** A role as its instance's catalog has it. */
export type SeenRole = { oid: number; role: DatabaseRole }

/** Roles by name, at most so many: the one of a name, or all that are not predefined. */
export async function readRoles(client: pg.Client, name: string | null, most: number): Promise<SeenRole[]> {
  const { rows } = await client.query<Row>(rolesSql, [name, most, ROLES_OF_THE_HOST])
  return rows.map(({ oid, mayMore, ...row }) => {
    const kept = isRoleOfFloe(row.name) ? 'floe' : mayMore ? 'superuser' : null
    return { oid, role: DatabaseRole.parse({ ...row, kept }) }
  })
}

const quoted = pg.escapeIdentifier

const findRole = async (client: pg.Client, name: string): Promise<SeenRole> => {
  const [seen] = await readRoles(client, name, 1)
  if (!seen)
    throw fault('role.not_found', `role ${quoted(name)} does not exist`, {
      hint: 'Names are exact: upper and lower case differ.',
    })
  return seen
}

/** It would be a way to the host, or past every right, for people who are not let go there by Floe. */
const mayMore = ({ role }: SeenRole) =>
  fault('role.superuser', `role ${quoted(role.name)} is a superuser, or could become one`, {
    detail: role.superuser
      ? 'It has SUPERUSER.'
      : role.replication || role.bypassRls
        ? `It has ${role.replication ? 'REPLICATION' : 'BYPASSRLS'}.`
        : `It is a member of a role that has SUPERUSER, REPLICATION or BYPASSRLS, or of one of ${ROLES_OF_THE_HOST.join(', ')}.`,
    hint: 'Change it as a superuser, with SQL.',
  })

/** Throws `role.of_floe` or `role.reserved`. */
export function refuseReserved(name: string): void {
  const reserved = whyRoleReserved(name)
  if (reserved) throw new FaultError(reserved)
}

/** A role that may be changed or dropped; throws `role.of_floe`, `role.reserved`, `role.not_found` or `role.superuser`. */
export async function findChangeable(client: pg.Client, name: string): Promise<SeenRole> {
  refuseReserved(name)
  const seen = await findRole(client, name)
  if (seen.role.kept !== null) throw mayMore(seen)
  return seen
}

/** The same of a role that another one is to be a member of: predefined ones may be, but for those that reach the host. */
export async function requireGrantable(client: pg.Client, name: string): Promise<void> {
  if (!isGrantable(name)) refuseReserved(name)
  const seen = await findRole(client, name)
  if (seen.role.kept !== null) throw mayMore(seen)
}
