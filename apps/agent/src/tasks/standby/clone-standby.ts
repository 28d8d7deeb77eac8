import { renameSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import type { Upstream } from '@floe/agent-contract'
import { FaultError, fault, formatBytes, toFault } from '@floe/domain'
import { removeFile, syncDirectory } from '@floe/host/replace-file'
import { waitFor } from '@floe/host/wait'
import { ensureServerCertificate } from '../../engine/access/server-certificate'
import {
  standbySettings,
  upstreamConninfo,
  writeClusterSettings,
  writeIdent,
  writeStandbySignal,
} from '../../engine/cluster/member-files'
import { copyByReflink, findSharedSource, type SharedSource } from '../../engine/creation/copy-by-reflink'
import { removeUnfinished } from '../../engine/creation/initialise'
import { dataFiles } from '../../engine/directory/layout'
import type { Instance } from '../../engine/instance'
import { withSecondCheckpoint } from '../../engine/page-repair/second-checkpoint'
import { sqlState } from '../../engine/process/connection'
import { initialSettings } from '../../engine/settings/initial'
import { readManagedSettings, writeManagedSettings } from '../../engine/settings/managed-file'
import { isNoRoom } from '../../host/no-room'
import { makeOwnedDirectory, readOwnedFile } from '../../host/owned-files'
import { runCommand } from '../../host/run-command'
import { isThere, removeInTree, removeTree, replaceInTree } from '../../host/tree'
import type { TaskBody, TaskContext } from '../runner/task'

/** Beside the databases: WAL that comes in meanwhile, and what a file system keeps for itself. */
const SPARE_BYTES = 256 * 1024 * 1024
/** A killed run's connection holds the slot until the upstream has noticed. */
const SLOT_FREE_BOUND_MS = 60_000
/** In a copied data directory: which task made it, so that a run after a kill knows it is whole. */
const MARK = 'floe.cloned'

/**
 * Copies the upstream into a directory beside the data directory and puts it in its place by a rename. Whatever happens
 * before that rename leaves things as they were; an earlier data directory is only removed after it.
 */
export const cloneStandby: TaskBody<'clone-standby'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { layout, registered } = instance
  const former = join(layout.directory, 'pgdata.former')
  await removeUnfinished(layout, instance.user)
  if (isWhole(instance, context, task.replace)) {
    context.log('the copy is whole already')
    await removeTree(former, instance.user)
    if (registered.expected === 'creating') context.registry.update(task.instanceId, { expected: 'stopped' })
    return { bytes: 0, copyMs: 0, method: 'kept' }
  }
  // a run that was killed between its two renames
  if (isThere(former) && !isThere(layout.dataDirectory)) renameSync(former, layout.dataDirectory)
  await instance.look()
  if (instance.works())
    throw fault('instance.running', `instance "${registered.name}" is running`, {
      hint: 'Stop it first: its data directory is replaced.',
    })
  await checkVersion(task.upstream, instance)
  const begun = performance.now()
  const unfinished = join(layout.directory, `pgdata.unfinished-${process.pid}-${Date.now()}`)
  makeOwnedDirectory(unfinished, instance.user)
  let copied: { bytes: number; method: 'basebackup' | 'reflink' } | null = null
  try {
    copied = await copyUpstream(task.upstream, unfinished, instance, context)
    await furnish(task.upstream, unfinished, instance, context)
    context.signal.throwIfAborted()
  } catch (error) {
    await removeTree(unfinished, instance.user)
    throw isNoRoom(error) ? diskFull(copied?.bytes ?? 0, error) : error
  }
  if (isThere(layout.dataDirectory)) renameSync(layout.dataDirectory, former)
  renameSync(unfinished, layout.dataDirectory)
  removeFile(layout.rewindMark)
  syncDirectory(layout.directory)
  if (isThere(former)) {
    context.log('removing the former data directory')
    await removeTree(former, instance.user)
  }
  if (registered.expected === 'creating') context.registry.update(task.instanceId, { expected: 'stopped' })
  await instance.look()
  const copyMs = performance.now() - begun
  context.log(`copied ${formatBytes(copied.bytes)} in ${(copyMs / 1_000).toFixed(1)} s`)
  return { ...copied, copyMs }
}

/** True when this very task has put the copy in its place and was killed before it could say so. */
function isWhole(instance: Instance, context: TaskContext, replace: boolean): boolean {
  const { dataDirectory } = instance.layout
  if (!isThere(dataDirectory)) return false
  if (!replace) return true
  try {
    return readOwnedFile(join(dataDirectory, MARK)) === String(context.startedAt)
  } catch {
    return false
  }
}

async function checkVersion(upstream: Upstream, instance: Instance): Promise<void> {
  const own = await runCommand(join(instance.enginePrefix, 'bin', 'postgres'), ['--version'], {
    user: instance.user,
    timeoutMs: 10_000,
  })
  const version = /\(PostgreSQL\) (\S+)/.exec(own.stdout)?.[1] ?? 'unknown'
  const major = (v: string) => v.split('.')[0]
  if (upstream.engineVersion && major(version) !== major(upstream.engineVersion))
    throw fault('standby.version_differs', 'a standby must have the same major version as its primary', {
      detail: `The primary runs PostgreSQL ${upstream.engineVersion}, this host has ${version}.`,
      hint: 'Choose a host with the same engine, or update this one.',
    })
}

/** `bytes` that are copied, beside what is needed anyway. */
function checkRoom(bytes: number, instance: Instance): void {
  const { bavail, bsize } = statfsSync(instance.layout.directory)
  const free = bavail * bsize
  const needed = bytes + SPARE_BYTES
  if (free < needed)
    throw fault('standby.disk_too_small', 'the copy does not fit on this host', {
      detail: `It needs ${formatBytes(needed)}; ${formatBytes(free)} are free in "${instance.layout.directory}".`,
      hint: isThere(instance.layout.dataDirectory)
        ? 'The former data directory is kept until the copy is complete. Remove the standby and create a new one, or free space.'
        : 'Free space, or choose another host.',
    })
}

/** By reflink where the upstream's files can be shared, in seconds; else, and where that did not work, by pg_basebackup. */
async function copyUpstream(
  upstream: Upstream,
  directory: string,
  instance: Instance,
  context: TaskContext,
): Promise<{ bytes: number; method: 'basebackup' | 'reflink' }> {
  const shared = await findSharedSource(upstream, directory, instance, context)
  const why = shared.source ? await shareWith(shared.source, directory, instance, context) : shared.why
  if (typeof why !== 'string') return { bytes: why.bytes, method: 'reflink' }
  context.log(`copying by pg_basebackup from ${upstream.host}:${upstream.port}, not by reflink: ${why}`)
  checkRoom(upstream.sizeBytes ?? 0, instance)
  const bytes = await withSecondCheckpoint(async (again) => {
    if (again) await empty(directory, instance)
    return copy(upstream, directory, instance, context)
  }, context.log)
  return { bytes, method: 'basebackup' }
}

/** The bytes shared, or why they could not be; the directory is empty again then. */
async function shareWith(
  source: NonNullable<SharedSource['source']>,
  directory: string,
  instance: Instance,
  context: TaskContext,
): Promise<{ bytes: number } | string> {
  context.log('copying by reflink: both lie on a file system that can share blocks between files')
  checkRoom(0, instance)
  try {
    return { bytes: await copyByReflink(source, directory, instance, context) }
  } catch (error) {
    context.signal.throwIfAborted()
    const { code } = error instanceof FaultError ? error.fault : { code: '' }
    // neither would pg_basebackup help, nor a mistake of ours
    if (code === 'standby.disk_full' || code === 'standby.tablespaces') throw error
    if (code === '' && sqlState(error) === null) throw error
    await empty(directory, instance)
    const { message, detail } = toFault(error)
    return [message, detail].filter(Boolean).join(': ')
  }
}

async function empty(directory: string, instance: Instance): Promise<void> {
  await removeTree(directory, instance.user)
  makeOwnedDirectory(directory, instance.user)
}

/** pg_basebackup with the upstream's slot; answers the bytes it copied. */
async function copy(
  upstream: Upstream,
  directory: string,
  instance: Instance,
  context: TaskContext,
): Promise<number> {
  const own = instance.asking
  const args = [
    '-d',
    upstreamConninfo(upstream, own),
    // a word of its own, so that a killed run's copy is recognised by it
    '-D',
    directory,
    `--slot=${upstream.slot}`,
    '--wal-method=stream',
    '--checkpoint=fast',
    '--sync-method=syncfs',
    '--no-password',
    '--progress',
  ]
  let done = 0
  let result = { status: null as number | null, stderr: '' }
  const free = await waitFor(
    async () => {
      let said = ''
      result = await runCommand(join(instance.enginePrefix, 'bin', 'pg_basebackup'), args, {
        user: instance.user,
        signal: context.signal,
        onOutput: (text) => {
          said = (said + text).slice(-4_000)
          const seen = [...said.matchAll(/(\d+)\/(\d+) kB \((\d+)%\)/g)].at(-1)
          if (!seen) return
          done = Number(seen[1]) * 1024
          const all = Number(seen[2]) * 1024
          context.worked(done, all > 0 ? all : null)
        },
      })
      context.signal.throwIfAborted()
      return !/is active for PID/.test(result.stderr)
    },
    { boundMs: SLOT_FREE_BOUND_MS, everyMs: 1_000, signal: context.signal },
  )
  if (free === null || result.status !== 0) throw copyFault(result.stderr, upstream, done)
  return done
}

/** What went wrong, in the engine's words, without its progress lines. */
function copyFault(stderr: string, upstream: Upstream, done: number) {
  const words = stderr
    .split(/[\r\n]+/)
    .filter((line) => /error|fatal|could not|detail|hint/i.test(line))
    .map((line) => line.replace(/^.*?pg_basebackup: (error: )?/, '').trim())
    .slice(-4)
    .join(' ')
  if (/No space left on device/.test(stderr)) return diskFull(done)
  return fault('standby.not_copied', `could not copy from ${upstream.host}:${upstream.port}`, {
    detail: words || 'pg_basebackup left no word.',
    hint: 'Nothing of the copy is left. The log of the primary may say more.',
  })
}

const diskFull = (done: number, cause?: unknown) =>
  fault('standby.disk_full', 'the disk of the new standby is full', {
    detail: `${formatBytes(done)} had been copied; all of it has been removed again.`,
    hint: 'Free space, or choose another host.',
    cause,
  })

/** Makes the copy this instance's own: its settings, its upstream, and that it is a standby. */
async function furnish(
  upstream: Upstream,
  directory: string,
  instance: Instance,
  context: TaskContext,
): Promise<void> {
  const layout = { ...instance.layout, ...dataFiles(directory) }
  writeIdent(layout, instance.user)
  const managed = readManagedSettings(layout.managedFile)
  for (const [name, value] of Object.entries(initialSettings(context.installation))) managed.set(name, value)
  writeManagedSettings(layout.managedFile, managed, instance.user)
  writeClusterSettings(layout, standbySettings(upstream, instance.asking), instance.user)
  // the upstream's came along
  removeInTree(layout.certificateFile, instance.user)
  await ensureServerCertificate(layout, instance.registered.name, instance.user)
  writeStandbySignal(layout, instance.user)
  removeInTree(join(directory, 'postmaster.opts'), instance.user)
  replaceInTree(join(directory, MARK), String(context.startedAt), instance.user)
  const synced = await runCommand(
    join(instance.enginePrefix, 'bin', 'initdb'),
    ['-D', directory, '--sync-only', '--sync-method=syncfs'],
    { user: instance.user, timeoutMs: 300_000, signal: context.signal },
  )
  context.signal.throwIfAborted()
  if (synced.status !== 0)
    throw /No space left on device/.test(synced.stderr)
      ? diskFull(0)
      : fault('standby.not_copied', 'could not sync the copy', { detail: synced.stderr.trim() })
}
