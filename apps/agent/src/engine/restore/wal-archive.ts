import { fault, type Lsn, lsnToBytes } from '@floe/domain'
import type { EngineUser } from '../../host/engine-user'
import { parseWalFileName, walFileName } from '../wal/wal-file'
import { readableHint, requireDirectory, runIn } from './as-user'
import type { BaseBackup } from './base-backup'

/** Files of WAL in an archive, oldest first. */
export type WalArchive = { directory: string; files: { name: string; modifiedAt: number }[] }

const LIST_MAX_BYTES = 24 * 1024 * 1024

/** Where files of WAL are fetched from, the first that has one, and all that are there. */
export type RestoreSource = { directories: readonly string[]; files: WalArchive['files'] }

export const sourceOf = (...archives: readonly WalArchive[]): RestoreSource => ({
  directories: archives.map(({ directory }) => directory),
  files: archives.flatMap(({ files }) => files).sort((a, b) => (a.name.slice(8) < b.name.slice(8) ? -1 : 1)),
})

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

/** Of segments that are missing, so many are named. */
const NAMED_MAX = 5

/** Refuses, before anything is copied, where a segment between the backup's begin and a position lies nowhere. */
export function refuseGap(
  archives: readonly WalArchive[],
  { firstWal, control, files }: Pick<BaseBackup, 'firstWal' | 'control' | 'files'>,
  end: Lsn,
): void {
  const size = BigInt(control.walSegmentBytes)
  const numbered = (name: string) => parseWalFileName(name, size)?.segment
  const there = new Set(
    [
      ...archives.flatMap((a) => a.files.map((f) => f.name)),
      ...files.map((f) => f.path.replace(/^pg_wal\//, '')),
    ]
      .map(numbered)
      .filter((segment) => segment !== undefined),
  )
  const first =
    (firstWal !== null ? numbered(firstWal) : undefined) ?? lsnToBytes(control.redoLsn as Lsn) / size
  const last = (lsnToBytes(end) - 1n) / size
  const missing: string[] = []
  for (let segment = first; segment <= last && missing.length <= NAMED_MAX; segment++)
    if (!there.has(segment)) missing.push(walFileName(control.timeline, segment, size).slice(8))
  if (missing.length === 0) return
  const named = missing.slice(0, NAMED_MAX).map((name) => `"…${name}"`)
  throw fault('restore.wal_missing', 'WAL between the backup and the primary’s end is missing', {
    detail: `${named.join(', ')}${missing.length > NAMED_MAX ? ' and more' : ''} are neither in ${archives.map((a) => `"${a.directory}"`).join(' nor in ')}, nor in the backup.`,
    hint: 'Name an archive with all of the primary’s WAL since the backup was begun, as plain files.',
  })
}

/** About how many segments are replayed: to the first one that was archived after the moment. */
export function segmentsToReplay({ files }: RestoreSource, firstWal: string, at: number): number {
  const from = files.filter(({ name }) => name.slice(8) >= firstWal.slice(8))
  const past = from.findIndex(({ modifiedAt }) => modifiedAt >= at)
  const segments = new Set((past < 0 ? from : from.slice(0, past + 1)).map(({ name }) => name.slice(8)))
  return Math.max(1, segments.size)
}

/**
 * The command by which the engine fetches a file of WAL. It runs as the instance's user in the restored data directory, like
 * everything else of that engine; the paths are quoted for the shell, and for the engine, which reads a percent sign.
 */
export function restoreCommand(directories: readonly string[]): string {
  return directories
    .map((directory) => {
      const quoted = `'${directory.replaceAll("'", "'\\''")}'`.replaceAll('%', '%%')
      return `{ test -f ${quoted}/%f && test ! -L ${quoted}/%f && cp --no-dereference --reflink=auto -- ${quoted}/%f %p; }`
    })
    .join(' || ')
}
