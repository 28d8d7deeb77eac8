import { FaultError } from '@floe/domain'
import pg from 'pg'
import { z } from 'zod'
import { changeRoles, dependentsHint } from '../../engine/roles/change-roles'
import { findChangeable, readRoles } from '../../engine/roles/seen-role'
import type { TaskBody } from '../runner/task'

/** Number of the role that a run was to drop, noted before its commit. */
const Note = z.object({ oid: z.number() })

/** DROP ROLE, once; PostgreSQL refuses it while the role owns objects or has privileges on them. */
export const dropDatabaseRole: TaskBody<'drop-database-role'> = async (task, context) => {
  const { role } = task
  const name = pg.escapeIdentifier(role)
  const dropped = changeRoles(context.instances.get(task.instanceId), context.log, {
    settled: async (client) => {
      const { data: note } = Note.safeParse(context.note.read())
      const [seen] = await readRoles(client, role, 1)
      return note !== undefined && seen?.oid !== note.oid
    },
    change: async (client) => {
      const { oid } = await findChangeable(client, role)
      await client.query(`DROP ROLE ${name}`)
      context.signal.throwIfAborted()
      context.note.write({ oid } satisfies z.infer<typeof Note>)
      context.log(`DROP ROLE ${name}`)
    },
  })
  await dropped.catch((error: unknown) => {
    if (!(error instanceof FaultError) || error.fault.code !== 'role.has_dependents') throw error
    throw new FaultError({ ...error.fault, hint: dependentsHint(role) }, error)
  })
  return {}
}
