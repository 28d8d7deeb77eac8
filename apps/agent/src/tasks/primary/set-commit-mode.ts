import { fault } from '@floe/domain'
import { withPrimarySession } from '../../engine/cluster/primary-session'
import type { TaskBody } from '../runner/task'

/** synchronous_commit of a database, a role, or a role in a database. */
export const setCommitMode: TaskBody<'set-commit-mode'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { database, role, commitMode } = task
  if (database === null && role === null)
    throw fault('commit_mode.no_scope', 'a database or a role has to be named')
  return withPrimarySession(instance, async (client) => {
    const quoted = (name: string) => client.escapeIdentifier(name)
    const target =
      role === null
        ? `DATABASE ${quoted(database as string)}`
        : `ROLE ${quoted(role)}${database === null ? '' : ` IN DATABASE ${quoted(database)}`}`
    const action =
      commitMode === null ? 'RESET synchronous_commit' : `SET synchronous_commit = '${commitMode}'`
    try {
      await client.query(`ALTER ${target} ${action}`)
    } catch (error) {
      throw fault('commit_mode.not_set', error instanceof Error ? error.message : String(error))
    }
    context.log(`ALTER ${target} ${action}; it holds for new sessions`)
    return { commitMode }
  })
}
