import { fault } from '@floe/domain'
import type { EngineUser } from '../../host/engine-user'
import { type CommandOptions, type CommandResult, runCommand } from '../../host/run-command'

/**
 * Runs a command in a directory that a person named, as the instance's user. That user itself enters it: what it may not
 * pass or read stays closed, though the agent could.
 */
export function runIn(
  user: EngineUser,
  directory: string,
  command: readonly string[],
  options: Omit<CommandOptions, 'user' | 'directory'> = {},
): Promise<CommandResult> {
  return runCommand(
    '/bin/sh',
    ['-c', 'umask 077; cd -- "$1" && shift && exec "$@"', 'sh', directory, ...command],
    { ...options, user },
  )
}

/** How the user gets to read what it cannot. */
export const readableHint = (user: EngineUser, directory: string): string =>
  `It is read as the instance’s user "${user.name}", never as root. Let that user read all of it, e.g. by "setfacl -R -m u:${user.name}:rX ${directory}".`

/** What went wrong on a named directory, where it is that the user may not read it; null where it is something else. */
export const notReadable = (user: EngineUser, what: string, directory: string, path: string | null) =>
  fault('restore.not_readable', `the ${what} cannot be read by the instance’s user`, {
    detail:
      path === null
        ? `User "${user.name}" may not enter "${directory}".`
        : `User "${user.name}" may not read "${path}" in "${directory}".`,
    hint: readableHint(user, directory),
  })

/** Refuses a directory that is not there, is none, or cannot be entered by the user. */
export async function requireDirectory(
  user: EngineUser,
  what: string,
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  const r = await runCommand('ls', ['-d', '--', `${directory}/.`], { user, signal, timeoutMs: 60_000 })
  signal.throwIfAborted()
  if (r.status === 0) return
  if (/Permission denied/.test(r.stderr)) throw notReadable(user, what, directory, null)
  throw fault('restore.no_directory', `the ${what} is not there`, {
    detail: /Not a directory/.test(r.stderr)
      ? `"${directory}" is not a directory.`
      : `Directory "${directory}" does not exist on this host.`,
    hint: 'Name a directory of the host on which the primary runs.',
  })
}
