import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Upstream } from '@floe/agent-contract'
import { fault } from '@floe/domain'
import type { EngineUser } from '../../host/engine-user'
import { isNoRoom } from '../../host/no-room'
import { runCommand } from '../../host/run-command'
import { cloneFiles, listBelow, removeInTree, replaceInTree } from '../../host/tree'
import type { Instance } from '../instance'
import type { Instances } from '../instances'
import { withSecondCheckpoint } from '../page-repair/second-checkpoint'
import type { Work } from '../work'

/** A checkpoint of a busy instance, and the switch of its WAL at the end, may take a while. */
const STATEMENT_MS = 600_000
/** With more, pg_basebackup copies them, which lists none. */
const FILES_MAX = 100_000
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
/** Temporary relations of sessions, and caches that a copy creates again. */
export const passing = /^(pgsql_tmp.*|pg_internal\.init.*|t\d+_\d+(_\w+)?(\.\d+)?)$/
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
  instance: Instance,
  context: Work & { instances: Pick<Instances, 'list'> },
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
    if (await hasMoreFiles(source.user, source.layout.dataDirectory, FILES_MAX, context.signal))
      return none(`its data directory has more than ${FILES_MAX} files`)
    try {
      await share(['PG_VERSION'], source, { directory, instance }, context)
      return { source, why: null }
    } catch (error) {
      if (context.signal.aborted) throw error
      return none('the file system cannot share blocks between files')
    } finally {
      removeInTree(join(directory, 'PG_VERSION'), instance.user)
    }
  }
  return none('it is on another host')
}

/**
 * A base backup whose files share their blocks with the source's: takes no time and no space for data, only for names.
 * Between pg_backup_start and pg_backup_stop the source writes full-page images, as for any base backup, so that what
 * was copied while it changed is put right by WAL; the WAL of that time is copied last. Answers the bytes shared.
 */
export function copyByReflink(
  source: Instance,
  directory: string,
  instance: Instance,
  context: Work,
): Promise<number> {
  const target = { directory, instance }
  return source.connect(async (client) => {
    await client.query('set idle_session_timeout = 0')
    context.log('writing a checkpoint on the primary')
    await withSecondCheckpoint(
      () => client.query(`select pg_backup_start('floe clone', fast => true)`),
      context.log,
    )
    const bytes = await copyFiles(source, target, context)
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
    replaceInTree(join(directory, 'backup_label'), stopped.label, instance.user)
    await copyWal(source, target, stopped, context)
    return bytes
  }, STATEMENT_MS)
}

/**
 * Whether there is more below a directory than `most` files and directories, as its owner sees it. The list of a copy's files
 * is held in memory, and the instance's superuser decides how many there are.
 */
export async function hasMoreFiles(
  owner: EngineUser,
  directory: string,
  most: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const r = await runCommand(
    '/bin/sh',
    ['-c', 'find -P . -mindepth 1 -xdev -printf x | head -c "$1" | wc -c', 'sh', String(most + 1)],
    { user: owner, directory, signal },
  )
  signal?.throwIfAborted()
  // what cannot be counted is not copied by a list either
  return r.status !== 0 || Number(r.stdout) > most
}

type Found = { directories: string[]; files: { path: string; bytes: number }[] }

/** Kind, size and path of everything below a directory, as its owner sees it; links are told as such. */
async function listFiles(owner: EngineUser, root: string, context: Work): Promise<string[]> {
  const r = await runCommand('find', ['-P', '.', '-mindepth', '1', '-xdev', '-printf', '%y %s %P\\0'], {
    user: owner,
    directory: root,
    signal: context.signal,
    outputMaxBytes: LIST_MAX_BYTES,
  })
  context.signal.throwIfAborted()
  const gone = r.stderr.split('\n').every((l) => l === '' || /No such file or directory$/.test(l))
  if (r.signal !== null || !gone) throw notCopied(r.stderr || `find was ended by ${r.signal}`)
  if (Buffer.byteLength(r.stdout) >= LIST_MAX_BYTES)
    throw fault('standby.not_copied', 'the data directory holds too many files to be copied by reflink')
  return r.stdout.split('\0').filter(Boolean)
}

/** Of names as long as they like: a part of the agent's memory. */
const LIST_MAX_BYTES = 24 * 1024 * 1024

/** Everything a copy needs, by paths below the data directory. What goes away meanwhile is not needed. */
async function findFiles(source: Instance, context: Work): Promise<Found> {
  const found: Found = { directories: [], files: [] }
  const left: string[] = []
  for (const line of await listFiles(source.user, source.layout.dataDirectory, context)) {
    const [, kind, size, path] = /^(\S) (\d+) ([\s\S]*)$/.exec(line) as unknown as [
      string,
      string,
      string,
      string,
    ]
    const cut = path.lastIndexOf('/')
    const [below, name] = [cut < 0 ? '' : path.slice(0, cut), path.slice(cut + 1)]
    if (left.some((directory) => below === directory || below.startsWith(`${directory}/`))) continue
    const isEmptied = emptied.includes(below) || below.startsWith('pg_wal/')
    if (kind === 'l')
      throw fault('standby.not_copied', 'the data directory holds a symbolic link', {
        detail: `"${path}" leads elsewhere.`,
      })
    if (kind === 'd') {
      if (passing.test(name) || (isEmptied && !below.startsWith('pg_wal'))) left.push(path)
      else found.directories.push(path)
    } else if (kind === 'f') {
      if (isEmptied || passing.test(name) || (below === '' && leftOut.includes(name))) continue
      if (path !== CONTROL_FILE) found.files.push({ path, bytes: Number(size) })
    }
  }
  return found
}

/** A data directory that is being made, and whose. */
type Target = { directory: string; instance: Instance }

async function copyFiles(source: Instance, target: Target, context: Work): Promise<number> {
  const { directory, instance } = target
  const { directories, files } = await findFiles(source, context)
  const made = await runCommand('xargs', ['-0', '-r', 'mkdir', '-p', '-m', '700', '--'], {
    user: instance.user,
    directory,
    input: directories.join('\0'),
    signal: context.signal,
  })
  context.signal.throwIfAborted()
  if (made.status !== 0) throw notCopied(made.stderr)
  const all = files.reduce((sum, { bytes }) => sum + bytes, 0)
  let done = 0
  for (let i = 0; i < files.length; i += FILES_AT_ONCE) {
    const part = files.slice(i, i + FILES_AT_ONCE)
    await share(
      part.map(({ path }) => path),
      source,
      target,
      context,
    )
    done += part.reduce((sum, { bytes }) => sum + bytes, 0)
    context.worked(done, all)
  }
  // last, as in any base backup
  await share([CONTROL_FILE], source, target, context)
  return done
}

/** The WAL from the backup's begin to its end, whole: with it the copy is consistent without asking anybody. */
async function copyWal(
  source: Instance,
  target: Target,
  { label, lastWal, segment }: { label: string; lastWal: string; segment: string },
  context: Work,
): Promise<void> {
  const firstWal = /\(file ([0-9A-F]{24})\)/.exec(label)?.[1]
  if (!firstWal) throw fault('standby.not_copied', 'the backup does not say where its WAL begins')
  const wanted = walFiles(firstWal, lastWal, Number(segment))
  const histories = listBelow(source.layout.dataDirectory, 'pg_wal').filter((name) =>
    /^[0-9A-F]{8}\.history$/.test(name),
  )
  const names = [...wanted, ...histories]
  const gone = await share(
    names.map((name) => `pg_wal/${name}`),
    source,
    target,
    context,
  )
  if (gone.length > 0)
    throw fault('standby.not_copied', 'WAL that the copy needs is gone', {
      detail: `It is file "${gone[0]}".`,
    })
  // the primary archives it; after a promotion it must not be archived once more
  const done = await runCommand('xargs', ['-0', '-r', 'touch', '--'], {
    user: target.instance.user,
    directory: target.directory,
    input: names.map((name) => `pg_wal/archive_status/${name}.done`).join('\0'),
    signal: context.signal,
  })
  context.signal.throwIfAborted()
  if (done.status !== 0) throw notCopied(done.stderr)
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

/** Files that share their blocks with the source's, each opened as its own owner. Answers those that are gone by now. */
async function share(
  paths: string[],
  source: Instance,
  { directory, instance }: Target,
  context: Work,
): Promise<string[]> {
  try {
    return await cloneFiles(
      paths,
      { directory: source.layout.dataDirectory, owner: source.user },
      { directory, owner: instance.user },
      context.signal,
    )
  } catch (error) {
    context.signal.throwIfAborted()
    throw isNoRoom(error) ? notCopied('No space left on device') : notCopied((error as Error).message)
  }
}

function notCopied(reason: string) {
  if (/No space left on device/.test(reason))
    return fault('standby.disk_full', 'the disk of the new standby is full', {
      detail: 'What had been copied has been removed again.',
      hint: 'Free space, or choose another host.',
    })
  return fault('standby.not_copied', 'could not copy the data directory', {
    detail: reason.trim().split('\n').slice(-4).join(' ') || 'No reason was given.',
    hint: 'Nothing of the copy is left.',
  })
}
