import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { fault, formatBytes } from '@floe/domain'
import type { EngineUser } from '../../host/engine-user'
import { fillDirectory, makeDirectoryInTree } from '../../host/tree'
import type { Work } from '../work'
import { notReadable, runIn } from './as-user'
import type { BaseBackup } from './base-backup'
import type { RestorePlace } from './restore-place'

/** Of one command, so that the bytes are counted and giving up is heard. */
const FILES_AT_ONCE = 500
const BYTES_AT_ONCE = 256 * 1024 * 1024
const COPY_BOUND_MS = 3_600_000
/** For WAL that is fetched while it recovers, and so that the instance itself keeps room. */
const SPARE_BYTES = 512 * 1024 * 1024

/** Directories that an engine expects, also where a backup leaves them out. */
const NEEDED = [
  'pg_commit_ts',
  'pg_dynshmem',
  'pg_logical/mappings',
  'pg_logical/snapshots',
  'pg_multixact/members',
  'pg_multixact/offsets',
  'pg_notify',
  'pg_replslot',
  'pg_serial',
  'pg_snapshots',
  'pg_stat',
  'pg_stat_tmp',
  'pg_subtrans',
  'pg_tblspc',
  'pg_twophase',
  'pg_wal/archive_status',
  'pg_xact',
]

/** Our configuration and no other: what decides is on the engine's command line, which no file overrides. */
const CONFIGURATION = new Map([
  ['postgresql.conf', ''],
  ['postgresql.auto.conf', ''],
  ['pg_hba.conf', 'local all all trust\n'],
  ['pg_ident.conf', ''],
  ['recovery.signal', ''],
])

/**
 * Copies a backup as the instance's own user, sharing blocks where the file system can. Names and sizes are compared
 * afterwards: what was swapped meanwhile for a link, or for something else, does not start.
 */
export async function copyBackup(
  backup: BaseBackup,
  place: RestorePlace,
  user: EngineUser,
  context: Work,
): Promise<void> {
  makeDirectoryInTree(place.dataDirectory, user)
  const shares = await canShare(backup, place, user, context.signal)
  refuseFull(place.directory, shares ? 0 : backup.bytes, 'to copy the base backup')
  context.log(
    shares
      ? `copying ${formatBytes(backup.bytes)}, which share their blocks with the backup`
      : `copying ${formatBytes(backup.bytes)}`,
  )
  await made(
    runIn(user, place.dataDirectory, ['xargs', '-0', '-r', 'mkdir', '-p', '--'], {
      input: [...backup.directories, ...NEEDED].join('\0'),
      signal: context.signal,
      timeoutMs: COPY_BOUND_MS,
    }),
    backup,
    user,
    context,
  )
  let done = 0
  context.worked(0, backup.bytes)
  for (const batch of batches(backup.files)) {
    // No copy becomes larger than the largest file was when they were listed: a file that grows fills no disk. With the
    // byte more "cp" sees the end of that file; the kernel refuses to look beyond the limit.
    const limit = Math.max(...batch.map(({ bytes }) => bytes)) + 1
    await made(
      runIn(
        user,
        backup.directory,
        [
          ...['prlimit', `--fsize=${limit}`, '--core=0', '--'],
          ...['xargs', '-0', '-r', 'cp', '--no-dereference', '--no-preserve=mode,ownership'],
          // a word of its own: by it the command is found that a killed agent left
          ...['--reflink=auto', '--parents', '--target-directory', place.dataDirectory, '--'],
        ],
        { input: batch.map(({ path }) => path).join('\0'), signal: context.signal, timeoutMs: COPY_BOUND_MS },
      ),
      backup,
      user,
      context,
    )
    done += batch.reduce((sum, { bytes }) => sum + bytes, 0)
    context.worked(done, backup.bytes)
  }
  await compare(backup, place, user, context)
  fillDirectory(place.dataDirectory, CONFIGURATION, user)
}

/** Throws `restore.disk_full` where so many bytes and what is spared do not fit. */
export function refuseFull(directory: string, bytes: number, what: string): void {
  const { bavail, bsize } = statfsSync(dirname(directory))
  if (bavail * bsize < bytes + SPARE_BYTES)
    throw fault('restore.disk_full', `the disk has no room ${what}`, {
      detail: `It takes ${formatBytes(bytes + SPARE_BYTES)}; ${formatBytes(bavail * bsize)} are free in "${dirname(directory)}".`,
      hint: 'Free space, then try again. Nothing of the restore is left.',
    })
}

/** Tries it, by the smallest file of the backup. */
async function canShare(
  { directory }: BaseBackup,
  { dataDirectory }: RestorePlace,
  user: EngineUser,
  signal: AbortSignal,
): Promise<boolean> {
  const target = `${dataDirectory}/PG_VERSION`
  const r = await runIn(user, directory, ['cp', '--reflink=always', '--', 'PG_VERSION', target], { signal })
  signal.throwIfAborted()
  return r.status === 0
}

function* batches(files: BaseBackup['files']): Generator<BaseBackup['files']> {
  let batch: BaseBackup['files'] = []
  let bytes = 0
  for (const file of files) {
    batch.push(file)
    bytes += file.bytes
    if (batch.length < FILES_AT_ONCE && bytes < BYTES_AT_ONCE) continue
    yield batch
    batch = []
    bytes = 0
  }
  if (batch.length > 0) yield batch
}

async function made(
  command: ReturnType<typeof runIn>,
  backup: BaseBackup,
  user: EngineUser,
  context: Work,
): Promise<void> {
  const r = await command
  context.signal.throwIfAborted()
  if (r.status === 0) return
  const said = r.stderr.trim().split('\n').at(-1) || `the command ended with ${r.status ?? r.signal}`
  if (/No space left|quota exceeded/i.test(said))
    throw fault('restore.disk_full', 'the disk became full while the base backup was copied', {
      hint: 'Free space, then try again. Nothing of the restore is left.',
    })
  if (/File too large|terminated by signal 25$/.test(said))
    throw notCopied('A file of it grew while it was copied')
  const denied = /cannot open ['‘](.*)['’] for reading: Permission denied/.exec(said)?.[1]
  if (denied !== undefined) throw notReadable(user, 'base backup', backup.directory, denied)
  throw notCopied(said)
}

const notCopied = (why: string) =>
  fault('restore.not_copied', 'the base backup could not be copied', {
    detail: `${why}.`,
    hint: 'Nothing of the restore is left.',
  })

async function compare(
  backup: BaseBackup,
  { dataDirectory }: RestorePlace,
  user: EngineUser,
  context: Work,
): Promise<void> {
  const r = await runIn(
    user,
    dataDirectory,
    ['find', '-P', '.', '-mindepth', '1', '!', '-type', 'd', '-printf', '%y %s %P\\0'],
    { signal: context.signal, timeoutMs: COPY_BOUND_MS, outputMaxBytes: 32 * 1024 * 1024 },
  )
  context.signal.throwIfAborted()
  const copied = new Set(r.stdout.split('\0').filter(Boolean))
  const wrong = backup.files.find(({ path, bytes }) => !copied.has(`f ${bytes} ${path}`))
  if (r.status !== 0 || wrong || copied.size !== backup.files.length)
    throw notCopied(`"${wrong?.path ?? backup.directory}" changed while it was copied`)
}
