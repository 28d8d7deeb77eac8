import { lstatSync, rmSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Upstream } from '@floe/agent-contract'
import { fault } from '@floe/domain'
import type { Instance } from '../engine/instance'
import { withSecondCheckpoint } from '../engine/second-checkpoint'
import { replaceFile } from '../host/durable-files'
import { type CommandResult, runCommand } from '../host/run-command'
import type { TaskContext } from './task'

/** A checkpoint of a busy instance, and the switch of its WAL at the end, may take a while. */
const STATEMENT_MS = 600_000
/** So many files are handed to one cp: between two of them the bytes are counted, and giving up is heard. */
const FILES_AT_ONCE = 500

/** What pg_basebackup leaves out too: files of a running instance, and what is rebuilt at every start. */
const leftOut = [
  'postmaster.pid',
  'postmaster.opts',
  'postgresql.auto.conf.tmp',
  'current_logfiles',
  'current_logfiles.tmp',
  'backup_label',
  'backup_label.old',
  'tablespace_map',
  'backup_manifest',
  'standby.signal',
  'recovery.signal',
]
/** Directories of which only the name is copied; of pg_wal the directories in it as well. */
const emptied = [
  'pg_wal',
  'pg_replslot',
  'pg_dynshmem',
  'pg_notify',
  'pg_serial',
  'pg_snapshots',
  'pg_subtrans',
  'pg_stat_tmp',
]
/** Relations of sessions, and caches that a copy makes anew. */
const passing = /^(pgsql_tmp.*|pg_internal\.init.*|t\d+_\d+(_\w+)?(\.\d+)?)$/
const CONTROL_FILE = 'global/pg_control'

/** The instance of this host that a copy can share its blocks with, or why there is none. */
export type SharedSource = { source: Instance; why: null } | { source: null; why: string }

/**
 * Looks whether the upstream is a primary of this host whose files lie on the same file system as `directory`, and tries
 * there whether that can share blocks between files: by doing it once.
 */
export async function findSharedSource(
  upstream: Upstream,
  directory: string,
  context: TaskContext,
): Promise<SharedSource> {
  const none = (why: string): SharedSource => ({ source: null, why })
  for (const source of context.instances.list()) {
    if (source.registered.port !== upstream.port || source.postmaster === null) continue
    const observed = await source.observed()
    if (observed.connection.host !== upstream.host) continue
    if (upstream.systemIdentifier && observed.systemIdentifier !== upstream.systemIdentifier) continue
    // the copy's recovery ends where its backup ended, which only a primary writes into its WAL
    if (observed.role !== 'primary') return none('it is not a primary')
    if (lstatSync(source.layout.dataDirectory).dev !== lstatSync(directory).dev)
      return none('it lies on another file system')
    const tried = await reflink(['PG_VERSION'], source.layout.dataDirectory, directory, context)
    if (tried.status === 0) return { source, why: null }
    rmSync(join(directory, 'PG_VERSION'), { force: true })
    return none('the file system cannot share blocks between files')
  }
  return none('it is on another host')
}

/**
 * A base backup whose files share their blocks with the source's: takes no time and no space for data, only for names.
 * Between pg_backup_start and pg_backup_stop the source writes full-page images, as for any base backup, so that what
 * was copied while it changed is put right by WAL; the WAL of that time is copied last. Answers the bytes shared.
 */
export function copyByReflink(source: Instance, directory: string, context: TaskContext): Promise<number> {
  return source.connect(async (client) => {
    await client.query('set idle_session_timeout = 0')
    context.log('writing a checkpoint on the primary')
    await withSecondCheckpoint(
      () => client.query(`select pg_backup_start('floe clone', fast => true)`),
      context.log,
    )
    const bytes = await copyFiles(source.layout.dataDirectory, directory, context)
    const { rows } = await client.query<{
      label: string
      tablespaces: string
      lastWal: string
      segment: string
    }>(
      `select labelfile as label, spcmapfile as tablespaces, pg_walfile_name(lsn) as "lastWal",
              pg_size_bytes(current_setting('wal_segment_size'))::text as segment
         from pg_backup_stop(wait_for_archive => false)`,
    )
    const stopped = rows[0] as (typeof rows)[0] & object
    if (stopped.tablespaces.trim() !== '')
      throw fault('standby.tablespaces', 'an instance with tablespaces of its own cannot be copied', {
        hint: 'Move their tables to the default tablespace and drop them.',
      })
    replaceFile(join(directory, 'backup_label'), stopped.label, { owner: context.user })
    await copyWal(source.layout.dataDirectory, directory, stopped, context)
    return bytes
  }, STATEMENT_MS)
}

type Found = { directories: string[]; files: { path: string; bytes: number }[] }

/** Everything a copy needs, by paths below the data directory. What goes away meanwhile is not needed. */
async function findFiles(
  root: string,
  below = '',
  found: Found = { directories: [], files: [] },
): Promise<Found> {
  const entries = await readdir(join(root, below), { withFileTypes: true }).catch((error) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const isEmptied = emptied.includes(below) || below.startsWith('pg_wal/')
  for (const entry of entries) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`
    if (entry.isSymbolicLink())
      throw fault('standby.not_copied', 'the data directory holds a symbolic link', {
        detail: `"${path}" leads elsewhere.`,
      })
    if (entry.isDirectory()) {
      if (passing.test(entry.name) || (isEmptied && !below.startsWith('pg_wal'))) continue
      found.directories.push(path)
      await findFiles(root, path, found)
    } else if (entry.isFile()) {
      if (isEmptied || passing.test(entry.name) || (below === '' && leftOut.includes(entry.name))) continue
      const bytes = lstatSync(join(root, path), { throwIfNoEntry: false })?.size
      if (bytes !== undefined && path !== CONTROL_FILE) found.files.push({ path, bytes })
    }
  }
  return found
}

async function copyFiles(root: string, directory: string, context: TaskContext): Promise<number> {
  const { directories, files } = await findFiles(root)
  const made = await runCommand('xargs', ['-0', '-r', 'mkdir', '-p', '-m', '700', '--'], {
    user: context.user,
    directory,
    input: directories.join('\0'),
    signal: context.signal,
  })
  context.signal.throwIfAborted()
  if (made.status !== 0) throw notCopied(made)
  const all = files.reduce((sum, { bytes }) => sum + bytes, 0)
  let done = 0
  for (let i = 0; i < files.length; i += FILES_AT_ONCE) {
    const part = files.slice(i, i + FILES_AT_ONCE)
    await share(
      part.map(({ path }) => path),
      root,
      directory,
      context,
    )
    done += part.reduce((sum, { bytes }) => sum + bytes, 0)
    context.worked(done, all)
  }
  // last, as in any base backup
  await share([CONTROL_FILE], root, directory, context)
  return done
}

/** The WAL from the backup's begin to its end, whole: with it the copy is consistent without asking anybody. */
async function copyWal(
  root: string,
  directory: string,
  { label, lastWal, segment }: { label: string; lastWal: string; segment: string },
  context: TaskContext,
): Promise<void> {
  const firstWal = /\(file ([0-9A-F]{24})\)/.exec(label)?.[1]
  if (!firstWal) throw fault('standby.not_copied', 'the backup does not say where its WAL begins')
  const wanted = walFiles(firstWal, lastWal, Number(segment))
  const histories = (await readdir(join(root, 'pg_wal'))).filter((name) => name.endsWith('.history'))
  const names = [...wanted, ...histories]
  await share(
    names.map((name) => `pg_wal/${name}`),
    root,
    directory,
    context,
  )
  for (const name of names) {
    if (!lstatSync(join(directory, 'pg_wal', name), { throwIfNoEntry: false }))
      throw fault('standby.not_copied', 'WAL that the copy needs is gone', {
        detail: `It is file "${name}".`,
      })
    // the primary archives it; after a promotion it must not be archived once more
    replaceFile(join(directory, 'pg_wal/archive_status', `${name}.done`), '', { owner: context.user })
  }
}

/** Names of WAL files from one to another of the same timeline, both included. */
export function walFiles(first: string, last: string, segmentBytes: number): string[] {
  const perLog = BigInt(2 ** 32 / segmentBytes)
  const numberOf = (name: string) =>
    BigInt(`0x${name.slice(8, 16)}`) * perLog + BigInt(`0x${name.slice(16, 24)}`)
  const hex = (n: bigint) => n.toString(16).toUpperCase().padStart(8, '0')
  const names: string[] = []
  for (let n = numberOf(first); n <= numberOf(last); n++)
    names.push(`${first.slice(0, 8)}${hex(n / perLog)}${hex(n % perLog)}`)
  return names
}

/** Files that share their blocks with the source's; those that are gone by now are left out. */
async function share(paths: string[], root: string, directory: string, context: TaskContext): Promise<void> {
  const r = await reflink(paths, root, directory, context)
  context.signal.throwIfAborted()
  const complaints = r.stderr
    .split('\n')
    .filter((line) => line !== '' && !/No such file or directory$/.test(line))
  if (r.status !== 0 && (complaints.length > 0 || r.status !== 123 || r.stderr === '')) throw notCopied(r)
}

/** As the engine's user, so that nothing it planted leads a root agent elsewhere. */
const reflink = (paths: string[], root: string, directory: string, context: TaskContext) =>
  runCommand(
    'xargs',
    [
      '-0',
      '-r',
      'cp',
      '--reflink=always',
      '--no-dereference',
      '--preserve=mode',
      '--parents',
      '-t',
      directory,
    ],
    { user: context.user, directory: root, input: paths.join('\0'), signal: context.signal },
  )

function notCopied({ stderr, status, signal }: CommandResult) {
  if (/No space left on device/.test(stderr))
    return fault('standby.disk_full', 'the disk of the new standby is full', {
      detail: 'What had been copied has been removed again.',
      hint: 'Free space, or choose another host.',
    })
  return fault('standby.not_copied', 'could not copy the data directory', {
    detail: stderr.trim().split('\n').slice(-4).join(' ') || `cp ended with status ${status ?? signal}.`,
    hint: 'Nothing of the copy is left.',
  })
}
