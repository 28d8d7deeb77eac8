import { renameSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import {
  compareLsn,
  fault,
  formatBytes,
  historyFileName,
  KEPT_ASIDE_MAX,
  KeptAsideName,
  type Lsn,
  lsnToBytes,
  ownWalWords,
} from '@floe/domain'
import { syncDirectory } from '@floe/host/replace-file'
import type { Instance } from '../../engine/instance'
import { walNames } from '../../engine/wal/compare-histories'
import {
  asideDirectory,
  countCommits,
  describeKeptAside,
  dropKeptAside,
  findKeptAside,
  listKeptAside,
  removeUnfinishedAside,
  type StoredAside,
  told,
} from '../../engine/wal/kept-aside'
import { discardHint, type OwnWal, ownBytes, ownWal } from '../../engine/wal/own-wal'
import { parseWalFileName, segmentBegin } from '../../engine/wal/wal-file'
import { makeOwnedDirectory, readOwnedFile, statOwnedFile } from '../../host/owned-files'
import { runCommand } from '../../host/run-command'
import { isThere, removeTree } from '../../host/tree'
import type { TaskBody, TaskContext } from '../runner/task'

/** Files that one command copies, and after which progress is reported. */
const FILES_AT_A_TIME = 32
const COPY_BOUND_MS = 600_000
/** Counting reads everything that is kept once. */
const COUNT_BOUND_MS = 300_000
/** Of a timeline's history: some dozen bytes for each promotion. */
const HISTORY_MAX_BYTES = 1024 * 1024
/** Left free beside what is kept: the engine is to start there once more. */
const SPARE_BYTES = 64 * 1024 * 1024

/**
 * Copies aside the WAL that only a member has, before its rejoin takes that back: from where its history left the
 * primary's to the end of what is on its disk, with the histories of its timelines. Copied, not moved, and on disk before
 * it counts. Nothing of the member is changed; where it fails nothing may be discarded.
 */
export const keepAside: TaskBody<'keep-aside'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { layout, registered } = instance
  await removeUnfinishedAside(instance)
  const former = join(layout.directory, 'pgdata.former')
  // a copy that was killed between its two renames
  if (isThere(former) && !isThere(layout.dataDirectory)) {
    renameSync(former, layout.dataDirectory)
    syncDirectory(layout.directory)
  }
  // what lies there since is the primary's; that rewind began only once its own was kept
  if (isThere(layout.rewindMark)) return ofRewindCutShort(instance, context)
  if (!isThere(layout.dataDirectory)) {
    context.log('it has no data directory; there is nothing to keep aside')
    return { ownBytes: 0, ownCommits: 0, keptAside: null, discarded: false }
  }
  await instance.look()
  if (instance.works())
    throw fault('instance.running', `instance "${registered.name}" is running`, { hint: 'Stop it first.' })

  if (task.discard) return discard(instance, task, context)
  const own = await ownWal(instance, task.upstream, context)
  if (own.stretches.length === 0) {
    context.log(`nothing was only there: "${task.primary}" has all WAL that "${registered.name}" has`)
    return { ownBytes: 0, ownCommits: 0, keptAside: null, discarded: false }
  }
  if (own.unknown) context.log(own.unknown)
  const chosen = choose(instance, own)
  const known = findSame(instance, own, chosen)
  const stored = known ?? (await keep(instance, own, chosen, task.primary, context))
  context.log(
    `${known ? 'kept aside already' : 'kept aside'}: ${ownWalWords(stored)} that only "${registered.name}" had, in "${asideDirectory(instance, stored.name)}"`,
  )
  return {
    ownBytes: stored.bytes,
    ownCommits: stored.commits,
    keptAside: told(stored),
    discarded: false,
  }
}

function ofRewindCutShort(instance: Instance, context: TaskContext) {
  const name = KeptAsideName.safeParse(readOwnedFile(instance.layout.rewindMark)?.trim())
  const stored = name.success ? findKeptAside(instance, name.data) : null
  context.log(
    stored
      ? `an earlier pg_rewind was cut short; what only "${instance.registered.name}" had was kept aside before it: ${ownWalWords(stored)}`
      : 'an earlier pg_rewind was cut short; nothing of what it took back is kept, and how much that was is not known',
  )
  return {
    ownBytes: stored?.bytes ?? null,
    ownCommits: stored?.commits ?? null,
    keptAside: stored ? told(stored) : null,
    discarded: false,
  }
}

/** As a person said: only counted, as far as that is possible. */
async function discard(
  instance: Instance,
  task: Parameters<typeof keepAside>[0],
  context: TaskContext,
): ReturnType<typeof keepAside> {
  let counted: { bytes: number | null; commits: number | null } = { bytes: null, commits: null }
  try {
    const own = await ownWal(instance, task.upstream, context)
    const commits =
      own.stretches.length === 0
        ? 0
        : await count(instance, join(instance.layout.dataDirectory, 'pg_wal'), own, context)
    counted = { bytes: ownBytes(own), commits }
  } catch (error) {
    context.signal.throwIfAborted()
    context.log(
      `what only it had could not be counted: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  const discarded = counted.bytes !== 0
  context.log(
    discarded
      ? `nothing is kept aside, as was asked: ${ownWalWords(counted)} that only "${instance.registered.name}" had will be lost`
      : `nothing was only there: "${task.primary}" has all WAL that "${instance.registered.name}" has`,
  )
  return { ownBytes: counted.bytes, ownCommits: counted.commits, keptAside: null, discarded }
}

/** Null where it is not known from where on they would have to be counted. */
const count = async (instance: Instance, directory: string, own: OwnWal, context: TaskContext) =>
  own.forkLsn === null
    ? null
    : countCommits(instance, directory, own.stretches, {
        segmentBytes: own.segmentBytes,
        boundMs: COUNT_BOUND_MS,
        signal: context.signal,
      })

type Chosen = { wal: string[]; histories: string[]; fromLsn: Lsn; whole: boolean }

/** Files in pg_wal that hold what is to be kept: names and sizes are those of WAL, and none is a link. */
function choose(instance: Instance, own: OwnWal): Chosen {
  const { dataDirectory } = instance.layout
  const names = walNames(dataDirectory)
  if (names === null)
    throw notKept(instance, 'Its WAL cannot be listed: "pg_wal" is no directory of its own.')
  const size = BigInt(own.segmentBytes)
  const wal: string[] = []
  const segments = new Set<bigint>()
  for (const name of names) {
    const parsed = parseWalFileName(name.replace(/\.partial$/, ''), size)
    if (!parsed || !own.stretches.some((stretch) => lies(parsed, stretch, size))) continue
    if (statOfWal(instance, name)?.size !== own.segmentBytes)
      throw notKept(instance, `WAL segment "${name}" is not a file of ${formatBytes(own.segmentBytes)}.`)
    wal.push(name)
    segments.add(parsed.segment)
  }
  const sorted = [...segments].sort((a, b) => (a < b ? 1 : -1))
  const last = own.endLsn === null ? sorted[0] : (lsnToBytes(own.endLsn) - 1n) / size
  if (last === undefined || !segments.has(last))
    throw notKept(instance, 'The WAL that only it has written is no longer on its disk.')
  let first = last
  while (segments.has(first - 1n)) first--
  const begin = own.stretches[0]?.begin as Lsn
  const whole = first <= lsnToBytes(begin) / size
  const histories = [...new Set([own.timeline, ...own.stretches.map((s) => s.timeline)])]
    .map(historyFileName)
    .filter((name) => names.includes(name) && (statOfWal(instance, name)?.size ?? 0) <= HISTORY_MAX_BYTES)
  return { wal: wal.sort(), histories, fromLsn: whole ? begin : segmentBegin(first, size), whole }
}

const lies = (
  { timeline, segment }: { timeline: number; segment: bigint },
  { timeline: of, begin, end }: OwnWal['stretches'][number],
  size: bigint,
) =>
  timeline === of &&
  segment >= lsnToBytes(begin) / size &&
  (end === null || segment <= (lsnToBytes(end) - 1n) / size)

const walPath = (instance: Instance, name: string) => join(instance.layout.dataDirectory, 'pg_wal', name)

function statOfWal(instance: Instance, name: string) {
  try {
    return statOwnedFile(walPath(instance, name))
  } catch {
    return null
  }
}

/** The same that an earlier run, or an earlier rejoin that failed later on, has kept; what is damaged does not count. */
function findSame(instance: Instance, own: OwnWal, { wal, histories, fromLsn }: Chosen): StoredAside | null {
  const same = (a: StoredAside) =>
    a.systemIdentifier === own.systemIdentifier &&
    a.timeline === own.timeline &&
    a.forkLsn === own.forkLsn &&
    a.endLsn === own.endLsn &&
    a.fromLsn === fromLsn
  const there = (a: StoredAside) =>
    [...wal, ...histories].every(
      (name) => sizeInAside(instance, a.name, name) === statOfWal(instance, name)?.size,
    )
  return listKeptAside(instance).find((a) => same(a) && there(a)) ?? null
}

function sizeInAside(instance: Instance, name: KeptAsideName, file: string): number | null {
  try {
    return statOwnedFile(join(asideDirectory(instance, name), file))?.size ?? null
  } catch {
    return null
  }
}

async function keep(
  instance: Instance,
  own: OwnWal,
  { wal, histories, fromLsn, whole }: Chosen,
  primary: string,
  context: TaskContext,
): Promise<StoredAside> {
  await makeRoomAmongThem(instance, context)
  const files = [...histories, ...wal]
  const fileBytes = files.reduce((sum, name) => sum + (statOfWal(instance, name)?.size ?? 0), 0)
  const { bavail, bsize } = statfsSync(instance.layout.directory)
  if (bavail * bsize < fileBytes + SPARE_BYTES)
    throw diskFull(
      instance,
      `It takes ${formatBytes(fileBytes + SPARE_BYTES)}; ${formatBytes(bavail * bsize)} are free in "${instance.layout.directory}".`,
    )
  const { name, at } = freeName(instance, own.timeline)
  const directory = asideDirectory(instance, name)
  makeOwnedDirectory(directory, instance.user)
  try {
    await copyAll(instance, files, directory, context)
    const commits = whole ? await count(instance, directory, own, context) : null
    context.signal.throwIfAborted()
    const stored: StoredAside = {
      name,
      at,
      systemIdentifier: own.systemIdentifier,
      timeline: own.timeline,
      forkLsn: own.forkLsn,
      endLsn: own.endLsn,
      fromLsn,
      bytes: ownBytes(own),
      commits,
      unknown: own.unknown ?? whyNotCounted(whole, commits, fromLsn),
      primary: { name: primary, timeline: own.primaryTimeline },
      files: files.length,
      fileBytes,
      walSegmentBytes: own.segmentBytes,
      stretches: fromOn(own.stretches, fromLsn),
    }
    describeKeptAside(instance, stored)
    return stored
  } catch (error) {
    await removeTree(directory, instance.user)
    throw error
  }
}

function whyNotCounted(whole: boolean, commits: number | null, fromLsn: Lsn): string | null {
  if (!whole) return `what it wrote before ${fromLsn} was no longer on its disk`
  return commits === null ? 'its WAL could not be read to its end, or not in time' : null
}

/** The part of these stretches that begins at a position. */
const fromOn = (stretches: OwnWal['stretches'], from: Lsn): OwnWal['stretches'] =>
  stretches
    .filter(({ end }) => end === null || compareLsn(end, from) > 0)
    .map((s) => (compareLsn(s.begin, from) < 0 ? { ...s, begin: from } : s))

function freeName(instance: Instance, timeline: number): { name: KeptAsideName; at: number } {
  for (let at = Date.now(); ; at++) {
    const name = KeptAsideName.parse(
      `kept-aside-${new Date(at).toISOString().replace(/[-:.]/g, '')}-${timeline}`,
    )
    if (!isThere(asideDirectory(instance, name))) return { name, at }
  }
}

/** Where there are as many as there may be, those that are known to hold no commit make way, the oldest first. */
async function makeRoomAmongThem(instance: Instance, context: TaskContext): Promise<void> {
  const kept = listKeptAside(instance)
  if (kept.length < KEPT_ASIDE_MAX) return
  const empty = kept.findLast((k) => k.commits === 0)
  if (!empty)
    throw fault(
      'keep_aside.too_many',
      `${kept.length} times WAL of instance "${instance.registered.name}" is kept aside already`,
      {
        detail: 'Each holds or may hold transactions, and none is removed automatically.',
        hint: discardHint(
          instance,
          `Read them and drop one: "./floe instance kept-aside ${instance.registered.name}".`,
        ),
      },
    )
  context.log(`"${empty.name}", which holds no committed transaction, makes way`)
  await dropKeptAside(instance, empty.name)
}

/** By programs that run as the instance's user: what they read and write is what that user could. */
async function copyAll(
  instance: Instance,
  files: readonly string[],
  directory: string,
  context: TaskContext,
): Promise<void> {
  const { user } = instance
  for (let done = 0; done < files.length; done += FILES_AT_A_TIME) {
    const some = files.slice(done, done + FILES_AT_A_TIME)
    const bounds = { signal: context.signal, timeoutMs: COPY_BOUND_MS }
    const copied = await runCommand(
      'cp',
      [
        ...['--no-dereference', '--reflink=auto', `--target-directory=${directory}`, '--'],
        ...some.map((name) => walPath(instance, name)),
      ],
      { user, ...bounds },
    )
    context.signal.throwIfAborted()
    const synced =
      copied.status === 0
        ? await runCommand('sync', ['--', ...some.map((name) => join(directory, name)), directory], {
            user,
            ...bounds,
          })
        : copied
    context.signal.throwIfAborted()
    if (synced.status !== 0) {
      const said = synced.stderr.trim().split('\n').at(-1) || `ended with ${synced.status ?? synced.signal}`
      throw /No space left|quota exceeded/i.test(said)
        ? diskFull(instance, said)
        : notKept(instance, `It could not be copied: ${said}.`)
    }
    context.progress((done + some.length) / files.length)
  }
  for (const name of files) {
    const size = statOwnedFile(join(directory, name))?.size
    if (size === undefined || size !== statOfWal(instance, name)?.size)
      throw notKept(instance, `The copy of "${name}" is not whole.`)
  }
}

const notKept = (instance: Instance, detail: string) =>
  fault(
    'keep_aside.not_kept',
    `what only instance "${instance.registered.name}" has written could not be kept aside`,
    { detail, hint: discardHint(instance, 'Nothing was rewound.') },
  )

const diskFull = (instance: Instance, detail: string) =>
  fault(
    'keep_aside.disk_full',
    `the disk has no room to keep aside what only instance "${instance.registered.name}" has written`,
    { detail, hint: discardHint(instance, 'Nothing was rewound. Free space, then try again.') },
  )
