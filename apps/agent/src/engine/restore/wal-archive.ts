import { fault } from '@floe/domain'
import type { EngineUser } from '../../host/engine-user'
import { readableHint, requireDirectory, runIn } from './as-user'

/** Files of WAL in an archive, oldest first. */
export type WalArchive = { directory: string; files: { name: string; modifiedAt: number }[] }

const LIST_MAX_BYTES = 24 * 1024 * 1024

/** Looks into the archive; refuses one that the user cannot read, or that holds WAL only in some other form. */
export async function examineArchive(
  user: EngineUser,
  directory: string,
  signal: AbortSignal,
): Promise<WalArchive> {
  await requireDirectory(user, 'WAL archive', directory, signal)
  const list = (...conditions: string[]) =>
    runIn(
      user,
      directory,
      ['find', '-P', '.', '-mindepth', '1', '-maxdepth', '1', '-regextype', 'posix-extended', ...conditions],
      { signal, timeoutMs: 600_000, outputMaxBytes: LIST_MAX_BYTES },
    )
  const wal = ['-regex', './[0-9A-F]{24}']
  const r = await list(...wal, '-type', 'f', '-printf', '%T@ %f\\0')
  const unreadable = await list(...wal, '!', '-readable', '-printf', '%f', '-quit')
  const linked = await list(...wal, '-type', 'l', '-printf', '%f', '-quit')
  const packed = await list('-regex', './[0-9A-F]{24}\\.[^/]+', '-printf', '%f', '-quit')
  signal.throwIfAborted()
  if (r.status !== 0)
    throw fault('restore.not_readable', 'the WAL archive cannot be read by the instance’s user', {
      detail: `User "${user.name}" may not list "${directory}".`,
      hint: readableHint(user, directory),
    })
  if (unreadable.stdout)
    throw fault('restore.not_readable', 'the WAL archive cannot be read by the instance’s user', {
      detail: `User "${user.name}" may not read "${unreadable.stdout}" in "${directory}".`,
      hint: readableHint(user, directory),
    })
  if (linked.stdout)
    throw fault('restore.link', 'the WAL archive holds a symbolic link', {
      detail: `It is "${linked.stdout}" in "${directory}". Links are not followed.`,
      hint: 'Put the file itself in its place.',
    })
  const files = r.stdout
    .split('\0')
    .filter(Boolean)
    .map((line) => {
      const [seconds, name] = line.split(' ') as [string, string]
      return { name, modifiedAt: Number(seconds) * 1_000 }
    })
    .sort((a, b) => (a.name.slice(8) < b.name.slice(8) ? -1 : 1))
  if (files.length === 0 && packed.stdout)
    throw fault('restore.packed_wal', 'the WAL archive holds no plain WAL files', {
      detail: `It holds files such as "${packed.stdout}".`,
      hint: 'Unpack them into a directory first.',
    })
  return { directory, files }
}

/** About how many segments are replayed: to the first one that was archived after the moment. */
export function segmentsToReplay({ files }: WalArchive, firstWal: string, at: number): number {
  const from = files.filter(({ name }) => name.slice(8) >= firstWal.slice(8))
  const past = from.findIndex(({ modifiedAt }) => modifiedAt >= at)
  const segments = new Set((past < 0 ? from : from.slice(0, past + 1)).map(({ name }) => name.slice(8)))
  return Math.max(1, segments.size)
}

/**
 * The command by which the engine fetches a file of WAL. It runs as the instance's user in the restored data directory, like
 * everything else of that engine; the path is quoted for the shell, and for the engine, which reads a percent sign.
 */
export function restoreCommand(directory: string): string {
  const quoted = `'${directory.replaceAll("'", "'\\''")}'`.replaceAll('%', '%%')
  return `test -f ${quoted}/%f && test ! -L ${quoted}/%f && cp --no-dereference --reflink=auto -- ${quoted}/%f %p`
}
