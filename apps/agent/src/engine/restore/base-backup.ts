import { join } from 'node:path'
import { fault, millisecondsOf } from '@floe/domain'
import type { EngineUser } from '../../host/engine-user'
import { passing } from '../creation/copy-by-reflink'
import { type ControlFile, readControlFile } from '../directory/control-file'
import type { Work } from '../work'
import { notReadable, requireDirectory, runIn } from './as-user'

/** A plain base backup that a person named, as the instance's user sees it. */
export type BaseBackup = {
  directory: string
  control: ControlFile
  /** The file of WAL that its recovery begins in, where a backup_label names it. */
  firstWal: string | null
  /** It had begun by then, ms since the epoch: what was committed before lies in its files. Null where that is not known. */
  begunBy: number | null
  /** What of it is copied, by paths below it. */
  directories: string[]
  files: { path: string; bytes: number }[]
  bytes: number
  warnings: string[]
}

/** What an engine starts from. Nothing else enters the copy: no configuration, no library, no log, no state of a module. */
const COPIED = [
  'base',
  'global',
  'pg_commit_ts',
  'pg_logical',
  'pg_multixact',
  'pg_twophase',
  'pg_wal',
  'pg_xact',
]
const COPIED_FILES = ['PG_VERSION', 'backup_label']
/** Which lists of files are held in memory, and no more. */
const LIST_MAX_BYTES = 24 * 1024 * 1024
const LIST_MS = 600_000

/**
 * Looks at everything that can be known before a byte is copied; throws a fault that names what is wrong. `at`: a moment that
 * it must not be later than, if any.
 */
export async function examineBackup(
  directory: string,
  at: string | null,
  instance: { prefix: string; user: EngineUser; dataDirectory: string },
  context: Work,
): Promise<BaseBackup> {
  const { user, prefix } = instance
  await requireDirectory(user, 'base backup', directory, context.signal)
  const found = await listBackup(user, directory, context.signal)
  const version = (await readText(user, directory, 'PG_VERSION', context.signal))?.trim() ?? null
  const ours = await readControlFile(prefix, instance.dataDirectory, user)
  const control = version === null ? null : await readControlFile(prefix, directory, user)
  if (version === null || control === null)
    throw fault('restore.no_backup', `"${directory}" is not a plain base backup`, {
      detail: version === null ? 'It has no file "PG_VERSION".' : 'Its "global/pg_control" cannot be read.',
      hint: 'Name a directory as "pg_basebackup -Fp" makes it. One in tar format has to be unpacked first.',
    })
  refuseOther(version, control, ours)
  const text = await readText(user, directory, 'backup_label', context.signal)
  const label = text === null ? null : readLabel(text)
  if (label === null && !/^shut down/.test(control.clusterState))
    throw fault('restore.no_label', 'the backup does not say where its recovery begins', {
      detail: `It has no file "backup_label", and its engine was not stopped when it was copied (${control.clusterState}).`,
      hint: 'Name a backup made by pg_basebackup, or the files of an engine that was stopped.',
    })
  // both are whole seconds, cut off
  const begunAt = label === null ? control.checkpointAt : label.startedAt
  const begunBy = begunAt === null ? null : begunAt + 1_000
  if (at !== null && begunAt !== null && millisecondsOf(at) < begunAt) throw beforeBackup(begunBy)
  const warnings = await verifyManifest(prefix, user, directory, found, context.signal)
  if (ours && ours.systemIdentifier !== control.systemIdentifier)
    warnings.push(
      `The backup is of another system (identifier ${control.systemIdentifier}, this instance has ${ours.systemIdentifier}).`,
    )
  const files = found.files.filter(({ path }) => isCopied(path))
  return {
    directory,
    control,
    firstWal: label?.firstWal ?? null,
    begunBy,
    directories: found.directories.filter((path) => isCopied(path, true)),
    files,
    bytes: files.reduce((sum, f) => sum + f.bytes, 0),
    warnings,
  }
}

export const beforeBackup = (begunBy: number | null) =>
  fault('restore.before_backup', 'the backup had not been made at that moment', {
    detail:
      begunBy === null
        ? 'It holds later changes. No transaction ended between its begin and that moment, and its own time is not known.'
        : `It was begun at about ${new Date(begunBy).toISOString()}, and holds changes up to its end.`,
    hint: 'Name a moment after the backup’s end, or a backup that was made before.',
  })

function refuseOther(version: string, control: ControlFile, ours: ControlFile | null): void {
  const differs =
    ours === null
      ? null
      : ours.catalogVersion !== control.catalogVersion
        ? `Its catalog version is ${control.catalogVersion}, that of this instance ${ours.catalogVersion}.`
        : ours.blockBytes !== control.blockBytes
          ? `Its blocks have ${control.blockBytes} bytes, those of this instance ${ours.blockBytes}.`
          : null
  if (differs)
    throw fault('restore.other_version', 'this engine cannot read the backup', {
      detail: `It is of PostgreSQL ${version.slice(0, 20)}. ${differs}`,
      hint: 'Name a backup of the same major version.',
    })
}

function isCopied(path: string, directory = false): boolean {
  const parts = path.split('/')
  const [top = '', second = ''] = parts
  if (parts.length === 1) return directory ? COPIED.includes(top) : COPIED_FILES.includes(top)
  if (!COPIED.includes(top) || parts.some((part) => passing.test(part))) return false
  if (top !== 'pg_wal') return true
  return !directory && parts.length === 2 && /^([0-9A-F]{24}|[0-9A-F]{8}\.history)$/.test(second)
}

type Found = { directories: string[]; files: { path: string; bytes: number }[] }

/** Everything below the backup; throws where something in it is a link, or cannot be read by the user. */
async function listBackup(user: EngineUser, directory: string, signal: AbortSignal): Promise<Found> {
  const r = await runIn(
    user,
    directory,
    [
      ...['find', '-P', '.', '-mindepth', '1', '('],
      ...['-type', 'f', '!', '-readable', '-printf', '! 0 %P\\0', ')'],
      ...['-o', '-printf', '%y %s %P\\0'],
    ],
    { signal, timeoutMs: LIST_MS, outputMaxBytes: LIST_MAX_BYTES },
  )
  signal.throwIfAborted()
  const denied = /^find: ['‘]\.\/(.*)['’]: Permission denied$/m.exec(r.stderr)?.[1]
  if (denied !== undefined) throw notReadable(user, 'base backup', directory, denied)
  if (Buffer.byteLength(r.stdout) >= LIST_MAX_BYTES)
    throw fault('restore.too_many_files', 'the base backup holds too many files')
  if (r.status !== 0) throw unusable(directory, r.stderr)
  const found: Found = { directories: [], files: [] }
  for (const line of r.stdout.split('\0').filter(Boolean)) {
    const [, kind, bytes, path] = /^(\S) (\d+) ([\s\S]*)$/.exec(line) as unknown as [
      string,
      string,
      string,
      string,
    ]
    if (path.startsWith('pg_tblspc/'))
      throw fault('restore.tablespaces', 'a backup with tablespaces of its own cannot be restored', {
        detail: `It has "${path}".`,
        hint: 'Only databases in the default tablespace can be restored here.',
      })
    if (kind === '!') throw notReadable(user, 'base backup', directory, path)
    if (kind === 'd') found.directories.push(path)
    else if (kind === 'f') found.files.push({ path, bytes: Number(bytes) })
    else
      throw fault(
        'restore.link',
        `the base backup holds a ${kind === 'l' ? 'symbolic link' : 'special file'}`,
        {
          detail: `It is "${path}" in "${directory}". Links are not followed.`,
          hint: 'Put the files themselves in its place.',
        },
      )
  }
  return found
}

const unusable = (directory: string, said: string) =>
  fault('restore.not_read', 'the base backup cannot be read', {
    detail: `"${directory}": ${said.trim().split('\n').at(-1) || 'no reason was given'}.`,
  })

/** A small file of the backup; null where there is none. */
async function readText(
  user: EngineUser,
  directory: string,
  name: string,
  signal: AbortSignal,
): Promise<string | null> {
  const r = await runIn(user, directory, ['head', '-c', '4096', '--', name], { signal, timeoutMs: 60_000 })
  signal.throwIfAborted()
  return r.status === 0 ? r.stdout : null
}

/** Where recovery begins, and when the backup was begun, where its words are in UTC. */
export function readLabel(text: string): { firstWal: string | null; startedAt: number | null } {
  const firstWal = /^START WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)/m.exec(text)?.[1] ?? null
  const started = /^START TIME: (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) (?:UTC|GMT)$/m.exec(text)
  return { firstWal, startedAt: started ? Date.parse(`${started[1]}T${started[2]}Z`) : null }
}

/** Names and sizes of all that its manifest lists, which finds a copy that was cut short. Answers what is to be told. */
async function verifyManifest(
  prefix: string,
  user: EngineUser,
  directory: string,
  found: Found,
  signal: AbortSignal,
): Promise<string[]> {
  const tops = new Set(
    [...found.files, ...found.directories.map((path) => ({ path }))].map(
      ({ path }) => path.split('/')[0] as string,
    ),
  )
  if (!tops.has('backup_manifest'))
    return ['The backup has no manifest, so it was not checked that all of its files are there.']
  const settings = ['postgresql.conf', 'postgresql.auto.conf', 'pg_hba.conf', 'pg_ident.conf']
  const ignored = [
    ...settings,
    ...[...tops].filter((top) => !COPIED.includes(top) && !COPIED_FILES.includes(top)),
  ]
  const r = await runIn(
    user,
    directory,
    [
      join(prefix, 'bin', 'pg_verifybackup'),
      ...['--skip-checksums', '--no-parse-wal', '--quiet'],
      ...ignored.filter((top) => top !== 'backup_manifest').map((top) => `--ignore=${top}`),
      '.',
    ],
    { signal, timeoutMs: LIST_MS },
  )
  signal.throwIfAborted()
  if (r.status === 0) return []
  const first = /error: (.{1,500})/.exec(r.stderr)?.[1] ?? r.stderr.trim().split('\n').at(-1)
  throw fault('restore.incomplete_backup', 'the base backup is not what its manifest says', {
    detail: `pg_verifybackup says: ${first || 'nothing'}.`,
    hint: 'Name another backup, or copy this one again.',
  })
}
