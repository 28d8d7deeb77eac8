import pg from 'pg'
import { changeRoles } from '../../engine/roles/change-roles'
import { attributeWords, passwordWords, requireVerifierKept } from '../../engine/roles/role-statements'
import { findChangeable, requireGrantable } from '../../engine/roles/seen-role'
import type { TaskBody } from '../runner/task'

/** ALTER ROLE with what is granted and revoked. Done twice it comes to the same. */
export const changeDatabaseRole: TaskBody<'change-database-role'> = async (task, context) => {
  const { role, grant, revoke, passwordVerifier } = task
  const name = pg.escapeIdentifier(role)
  await changeRoles(context.instances.get(task.instanceId), context.log, {
    settled: async () => false,
    change: async (client) => {
      await findChangeable(client, role)
      for (const group of grant) await requireGrantable(client, group)
      const words = attributeWords(task)
      const all = [...words, ...passwordWords(passwordVerifier)]
      if (all.length > 0) await client.query(`ALTER ROLE ${name} ${all.join(' ')}`)
      await requireVerifierKept(client, role, passwordVerifier)
      for (const group of grant) await client.query(`GRANT ${pg.escapeIdentifier(group)} TO ${name}`)
      for (const group of revoke) await revokeFrom(client, role, group)
      context.signal.throwIfAborted()
      const said = [
        ...(words.length > 0 ? [`ALTER ROLE ${name} ${words.join(' ')}`] : []),
        ...(passwordVerifier === undefined
          ? []
          : [
              passwordVerifier === null
                ? `role ${name} has no password any more`
                : `role ${name} has a new password`,
            ]),
        ...grant.map((group) => `GRANT ${pg.escapeIdentifier(group)} TO ${name}`),
        ...revoke.map((group) => `REVOKE ${pg.escapeIdentifier(group)} FROM ${name}`),
      ]
      for (const line of said) context.log(line)
    },
  })
  return {}
}

/** Takes a membership away whoever granted it: without GRANTED BY, PostgreSQL takes only what the bootstrap superuser granted. */
async function revokeFrom(client: pg.Client, role: string, group: string): Promise<void> {
  const { rows } = await client.query<{ grantor: string }>(
    `select r.rolname::text as grantor from pg_auth_members m join pg_authid r on r.oid = m.grantor
      where m.roleid = (select oid from pg_authid where rolname = $1)
        and m.member = (select oid from pg_authid where rolname = $2)`,
    [group, role],
  )
  const [from, to] = [pg.escapeIdentifier(group), pg.escapeIdentifier(role)]
  for (const { grantor } of rows)
    await client.query(`REVOKE ${from} FROM ${to} GRANTED BY ${pg.escapeIdentifier(grantor)}`)
}
