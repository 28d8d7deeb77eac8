import { readFileSync } from 'node:fs'
import { fault } from '@floe/domain'

/** Who engine processes run as. `uid` and `gid` are null when that is the agent's own user: nothing has to be changed. */
export type EngineUser = { name: string; uid: number | null; gid: number | null }

/**
 * The engine's user by name from /etc/passwd. As root a name is required, because PostgreSQL refuses to run as root;
 * without root only the own user is possible.
 */
export function findEngineUser(
  name: string | null,
  passwd = '/etc/passwd',
  ownUid = process.getuid?.() ?? 0,
): EngineUser {
  const rows = readFileSync(passwd, 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  const own = rows.find((r) => r[2] === String(ownUid))?.[0] ?? String(ownUid)
  if (name === null || name === own) {
    if (ownUid === 0)
      throw fault('agent.engine_user_missing', 'engines cannot run as root', {
        hint: 'Set "engineUser" in config.json to an unprivileged user.',
      })
    return { name: own, uid: null, gid: null }
  }
  const row = rows.find((r) => r[0] === name)
  if (!row)
    throw fault('agent.engine_user_missing', `user "${name}" does not exist`, {
      hint: '"./floe up" as root creates it.',
    })
  if (ownUid !== 0)
    throw fault('agent.engine_user_denied', `cannot run engines as user "${name}"`, {
      detail: `The agent runs as user "${own}".`,
    })
  return { name, uid: Number(row[2]), gid: Number(row[3]) }
}
