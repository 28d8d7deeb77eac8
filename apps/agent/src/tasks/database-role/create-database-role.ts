import pg from 'pg'
import { z } from 'zod'
import { changeRoles } from '../../engine/roles/change-roles'
import { attributeWords, passwordWords, requireVerifierKept } from '../../engine/roles/role-statements'
import { readRoles, refuseReserved, requireGrantable } from '../../engine/roles/seen-role'
import type { TaskBody } from '../runner/task'

/** Number of the role that a run made, noted before its commit: a role of the same name with another one is somebody else's. */
const Note = z.object({ oid: z.number() })

/** CREATE ROLE with its memberships, once. */
export const createDatabaseRole: TaskBody<'create-database-role'> = async (task, context) => {
  const { role, memberOf, passwordVerifier } = task
  refuseReserved(role)
  const name = pg.escapeIdentifier(role)
  await changeRoles(context.instances.get(task.instanceId), context.log, {
    settled: async (client) => {
      const { data: note } = Note.safeParse(context.note.read())
      const [seen] = await readRoles(client, role, 1)
      return note !== undefined && seen?.oid === note.oid
    },
    change: async (client) => {
      for (const group of memberOf) await requireGrantable(client, group)
      const words = ['NOSUPERUSER NOREPLICATION NOBYPASSRLS', ...attributeWords(task)]
      const password = passwordVerifier === null ? [] : passwordWords(passwordVerifier)
      await client.query(`CREATE ROLE ${name} ${[...words, ...password].join(' ')}`)
      await requireVerifierKept(client, role, passwordVerifier)
      for (const group of memberOf) await client.query(`GRANT ${pg.escapeIdentifier(group)} TO ${name}`)
      const [made] = await readRoles(client, role, 1)
      context.signal.throwIfAborted()
      context.note.write({ oid: made?.oid ?? 0 } satisfies z.infer<typeof Note>)
      context.log(
        `CREATE ROLE ${name} ${words.join(' ')}${passwordVerifier === null ? '' : ', with a password'}`,
      )
    },
  })
  return {}
}
