import type { EngineUser } from './engine-user'

/**
 * The command that runs another one as a user, with nothing more than that user has: no capability, no supplementary
 * group, and no way to get more by a set-user-id program. The process stays the same, so its pid is the command's.
 */
export function confined(user: EngineUser, command: readonly [string, ...string[]]): [string, ...string[]] {
  if (user.uid === null || user.gid === null) return ['setpriv', '--no-new-privs', '--', ...command]
  return [
    'setpriv',
    ...['--reuid', String(user.uid), '--regid', String(user.gid), '--clear-groups'],
    ...['--no-new-privs', '--inh-caps=-all', '--ambient-caps=-all', '--bounding-set=-all'],
    '--',
    ...command,
  ]
}
