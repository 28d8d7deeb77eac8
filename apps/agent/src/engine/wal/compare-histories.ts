import { createHash } from 'node:crypto'
import { closeSync, readSync } from 'node:fs'
import { join } from 'node:path'
import type { Upstream } from '@floe/agent-contract'
import { bytesToLsn, historyFileName, type Lsn, lsnToBytes, parseTimelineHistory } from '@floe/domain'
import { readOwnedFileBelow } from '../../host/owned-files'
import { runCommand } from '../../host/run-command'
import { isThere, listBelow, openBelow } from '../../host/tree'
import { type AskUpstream, upstreamAsker } from '../cluster/ask-upstream'
import { type ControlFile, readControlFile, wasStandby } from '../directory/control-file'
import type { Instance } from '../instance'
import type { Work } from '../work'
import { timelineOfHistory } from './newest-timeline'
import { walFileName } from './wal-file'

/** How much WAL is compared at a time. */
const CHUNK_BYTES = 1024 * 1024
const PAGE_BYTES = 8192n
/** Where WAL ends at the end of a page, its last bytes may be those of a record that was never whole. */
const HEADER_BYTES = 16n
/** The longer one of both, at the beginning of a segment. */
const PAGE_HEADER_MAX_BYTES = 40

/**
 * Whether pg_rewind may be asked, and whether it need be. It takes two timelines of one number for one, and it ends an
 * interrupted recovery by running the engine alone, outside recovery: a standby would then write a checkpoint of its own
 * where its primary wrote something else, and would pass for one that has no WAL to discard. So a standby on its
 * primary's timeline is judged by its WAL: it follows the same history if its last segment is the same. Of other members
 * the WAL before the histories parted has to be the same, as far as the primary still has it. In doubt it is refused.
 */
export async function compareHistories(
  control: ControlFile,
  upstream: Upstream,
  instance: Instance,
  context: Work,
): Promise<{ refused: string } | { nothingToTakeBack: boolean }> {
  const ask = upstreamAsker(upstream, instance, context.signal)
  const seen = await lookAtUpstream(ask)
  if (seen.systemIdentifier !== control.systemIdentifier)
    return { refused: 'its system identifier is not the primary’s' }
  if (seen.timeline === null) return { refused: 'the primary is still a standby' }
  const timeline = Math.max(control.timeline, control.minRecoveryTimeline)
  const { dataDirectory } = instance.layout
  const judged = { control, dataDirectory, timeline, upstreamTimeline: seen.timeline }
  if (timeline === seen.timeline) {
    if (!wasStandby(control))
      return { refused: `it was a primary on timeline ${timeline}, as the primary is now: two histories` }
    const refused =
      laterHistory(judged) ??
      (await refuseCheckpoint(judged, instance, context)) ??
      (await compareEnd(judged, ask, instance, context))?.why ??
      null
    return refused ? { refused } : { nothingToTakeBack: true }
  }
  if (control.clusterState === 'in archive recovery')
    return {
      refused: `it crashed as a standby on timeline ${timeline}, and the primary is on timeline ${seen.timeline}`,
    }
  if (!seen.fullPageWrites)
    return {
      refused:
        'the primary runs with full_page_writes off; pg_rewind needs the page images to know which pages differ',
    }
  const refused = await compareBefore(judged, ask, instance, context)
  return refused ? { refused } : { nothingToTakeBack: false }
}

/** Both sides, to compare what lies before their histories part. */
export type Judged = {
  control: ControlFile
  dataDirectory: string
  timeline: number
  upstreamTimeline: number
}

const WAL = 'pg_wal'

/** A promotion that was cut short leaves the history of a timeline that a standby would look for, and nobody has. */
export function laterHistory({ dataDirectory, upstreamTimeline }: Judged): string | null {
  const names = walNames(dataDirectory)
  if (names === null) return 'its WAL cannot be listed'
  const later = names
    .map((name) => timelineOfHistory(name) ?? 0)
    .find((timeline) => timeline > upstreamTimeline)
  return later ? `it has the history of timeline ${later}, which is not the primary’s` : null
}

/** Replay starts at the checkpoint that the control file names: there has to be one, and this one. */
async function refuseCheckpoint(
  { control, dataDirectory }: Judged,
  instance: Instance,
  context: Work,
): Promise<string | null> {
  const size = BigInt(control.walSegmentBytes)
  const r = await runCommand(
    join(instance.enginePrefix, 'bin', 'pg_waldump'),
    [
      '-p',
      join(dataDirectory, WAL),
      '-s',
      control.checkpointLsn,
      '-n',
      '1',
      walFileName(control.timeline, lsnToBytes(control.checkpointLsn as Lsn) / size, size),
    ],
    { user: instance.user, timeoutMs: 20_000, signal: context.signal },
  )
  const redo = /CHECKPOINT_\w+ redo ([0-9A-F]+\/[0-9A-F]+);/.exec(r.stdout)?.[1]
  const there =
    r.status === 0 &&
    !/first record is after/.test(r.stderr) &&
    redo !== undefined &&
    lsnToBytes(redo as Lsn) === lsnToBytes(control.redoLsn as Lsn)
  return there ? null : `its WAL has no checkpoint at ${control.checkpointLsn}, where its control file says`
}

/** `mayBeOwn`: it has WAL that its primary does not, or may have some; else it has too little, or nobody can compare it any more. */
type NotTheSame = { why: string; mayBeOwn: boolean }

/** Why the end of a standby's WAL is not what its primary wrote there, or null. */
export async function compareEnd(
  { control, dataDirectory, timeline }: Judged,
  ask: AskUpstream,
  instance: Instance,
  context: Work,
): Promise<NotTheSame | null> {
  const end = await endOfWal(instance, context, { timeline, boundMs: 600_000 })
  if (end === null) return { why: 'where its WAL ends could not be read', mayBeOwn: true }
  const backup = isThere(join(dataDirectory, 'backup_label'))
  if (!backup && lsnToBytes(end) < lsnToBytes(control.minRecoveryLsn as Lsn))
    return {
      why: `its WAL ends at ${end}, before ${control.minRecoveryLsn}, up to where it had replayed`,
      mayBeOwn: false,
    }
  const size = BigInt(control.walSegmentBytes)
  const until = beforeHeader(lsnToBytes(end))
  const segment = until / size
  const there = await aheadOf(ask, until)
  if (there.ahead)
    return {
      why: `it has WAL up to ${end}, the primary on the same timeline only up to ${there.flushed}`,
      mayBeOwn: true,
    }
  const parts = [{ segment, length: Number(until % size) }]
  // a segment that has only begun proves nothing, unless the checkpoint lies in it: that has its time
  if (lsnToBytes(control.checkpointLsn as Lsn) / size !== segment && until % size < PAGE_BYTES)
    parts.push({ segment: segment - 1n, length: control.walSegmentBytes })
  for (const part of parts) {
    const file = walFileName(timeline, part.segment, size)
    const found = await comparePart(ask, dataDirectory, [file], part.length)
    if (found !== 'same') return { why: differing(found, file), mayBeOwn: found !== 'gone' }
  }
  return null
}

/** Why the WAL before the histories parted is not the primary's, or null; also null where the primary has it no more. */
export async function compareBefore(
  { control, dataDirectory, timeline, upstreamTimeline }: Judged,
  ask: AskUpstream,
  instance: Instance,
  context: Work,
): Promise<string | null> {
  const size = BigInt(control.walSegmentBytes)
  const own = parseHistory(
    readOwnedFileBelow(dataDirectory, `${WAL}/${historyFileName(timeline)}`) ?? '',
    timeline,
  )
  const theirs = parseHistory((await historyOfUpstream(ask, upstreamTimeline)) ?? '', upstreamTimeline)
  const last = own.filter((t, i) => theirs[i]?.timeline === t.timeline && theirs[i]?.begin === t.begin).at(-1)
  if (!last) return `its history (timeline ${timeline}) and the primary’s have nothing in common`
  const next = theirs[own.indexOf(last)]
  const ownEnd = last.end ?? (await endOfWal(instance, context, { boundMs: 600_000 }))
  const ends = [ownEnd, next?.end].flatMap((lsn) => (lsn ? [beforeHeader(lsnToBytes(lsn as Lsn))] : []))
  const until = ends.reduce<bigint | null>((least, n) => (least === null || n < least ? n : least), null)
  if (until === null) return 'where its WAL ends could not be read'
  if (last.timeline === upstreamTimeline) {
    const there = await aheadOf(ask, until)
    if (there.ahead)
      return `it has WAL of timeline ${last.timeline} up to ${bytesToLsn(until)}, the primary only up to ${there.flushed}: two histories`
  }
  if (until % size === 0n) return null
  // a promoted instance has the bytes before in the first segment of its own timeline, too
  const after = theirs[own.indexOf(last) + 1]?.timeline
  const name = (t: number) => walFileName(t, until / size, size)
  const files = [last.timeline, ...(after ? [after] : [])].map(name)
  const found = await comparePart(ask, dataDirectory, files, Number(until % size))
  if (found === 'differs') return differing(found, name(last.timeline))
  if (found !== 'same') context.log(`not compared: ${differing(found, name(last.timeline))}`)
  return null
}

/** Whether a position lies beyond what the upstream has written; in doubt it does. */
async function aheadOf(ask: AskUpstream, until: bigint): Promise<{ ahead: boolean; flushed: string }> {
  const [there] = await ask<{ ahead: boolean; flushed: string }>(
    `select :'until'::pg_lsn > pg_current_wal_flush_lsn() as ahead, pg_current_wal_flush_lsn()::text as flushed`,
    { until: bytesToLsn(until) },
  )
  return { ahead: there?.ahead !== false, flushed: there?.flushed ?? 'an unknown position' }
}

/** The text of the upstream's history file of a timeline; null where it has none. */
export async function historyOfUpstream(ask: AskUpstream, timeline: number): Promise<string | null> {
  const [file] = await ask<{ text: string | null }>(
    `select convert_from(pg_read_binary_file('pg_wal/' || :'file', 0, 1048576, true), 'UTF8') as text`,
    { file: historyFileName(timeline) },
  )
  return file?.text ?? null
}

const beforeHeader = (end: bigint): bigint => (end % PAGE_BYTES === 0n && end > 0n ? end - HEADER_BYTES : end)

type Compared = 'same' | 'differs' | 'unreadable' | 'gone'

const differing = (found: Exclude<Compared, 'same'>, file: string): string =>
  ({
    differs: `its WAL segment ${file} is not the primary’s: two histories`,
    unreadable: `its WAL segment ${file} cannot be read`,
    gone: `the primary has WAL segment ${file} no more, to compare with`,
  })[found]

/** Compares the beginning of a segment, the first of these files here, with that of the first of them which the primary has. */
async function comparePart(
  ask: AskUpstream,
  dataDirectory: string,
  files: readonly string[],
  length: number,
): Promise<Compared> {
  for (const file of files) {
    const sums = await ask<{ from: number; sum: string | null }>(
      `select i as from, encode(sha256(pg_read_binary_file('pg_wal/' || :'file', i,
                                                           least(:chunk, :length - i), true)), 'hex') as sum
         from generate_series(0, :length - 1, :chunk) i order by i`,
      { file, length, chunk: CHUNK_BYTES },
    )
    if (sums.some(({ sum }) => sum === null)) continue
    for (const { from, sum } of sums) {
      const own = readPart(dataDirectory, files[0] as string, from, Math.min(CHUNK_BYTES, length - from))
      if (own === null) return 'unreadable'
      if (createHash('sha256').update(own).digest('hex') !== sum) return 'differs'
    }
    return 'same'
  }
  return 'gone'
}

type Branch = { timeline: number; begin: string; end: string | null }

/** The timelines of a history in order, each with where it begins and ends; the last one has not ended. */
export function parseHistory(text: string, timeline: number): Branch[] {
  const branches: Branch[] = []
  let begin = '0/0'
  for (const { timeline: of, end } of parseTimelineHistory(text) ?? []) {
    branches.push({ timeline: of, begin, end })
    begin = end
  }
  return [...branches, { timeline, begin, end: null }]
}

/**
 * The end of the WAL on disk, or null: pg_waldump reads from the last checkpoint, or from where a standby had replayed to
 * at least, and names where it had to stop. With `start` everything before it is known to be there.
 */
export async function endOfWal(
  instance: Instance,
  context: Work,
  {
    dataDirectory = instance.layout.dataDirectory,
    timeline: asked,
    start: from,
    boundMs = 20_000,
  }: { dataDirectory?: string; timeline?: number; start?: Lsn; boundMs?: number } = {},
): Promise<Lsn | null> {
  const control = await readControlFile(instance.enginePrefix, dataDirectory, instance.user)
  if (!control) return null
  const timeline = asked ?? control.timeline
  const start = from ?? ((timeline > control.timeline ? control.minRecoveryLsn : control.redoLsn) as Lsn)
  const size = BigInt(control.walSegmentBytes)
  const segments = new Set(walNames(dataDirectory))
  // named, because without names it learns the size of a segment from any file, also from one that was only prepared
  const first = lsnToBytes(start) / size
  let last = first
  const exists = (segment: bigint) => segments.has(walFileName(timeline, segment, size))
  // what is known to be there may end with a segment
  if (!exists(first)) return from && lsnToBytes(from) % size === 0n ? from : null
  while (exists(last + 1n)) last++
  const r = await runCommand(
    join(instance.enginePrefix, 'bin', 'pg_waldump'),
    [
      '--quiet',
      '-p',
      join(dataDirectory, WAL),
      '-s',
      start,
      walFileName(timeline, first, size),
      walFileName(timeline, last, size),
    ],
    { user: instance.user, timeoutMs: boundMs, signal: context.signal },
  )
  if (r.status === 0) return bytesToLsn((last + 1n) * size)
  return r.signal === null ? endNamedByWaldump(r.stderr, from ? PAGE_HEADER_MAX_BYTES : 0) : null
}

/**
 * Reads where pg_waldump had to stop. Where it did not even begin with a record, what follows proves nothing; `skipped`
 * bytes may lie between, as the header of a page does.
 */
export function endNamedByWaldump(stderr: string, skipped = 0): Lsn | null {
  const between = /first record is after .* skipping over (\d+) bytes?/.exec(stderr)?.[1]
  if (/first record is after/.test(stderr) && !(between && Number(between) <= skipped)) return null
  const error = stderr
    .split('\n')
    .find((line) => /error: (?:error in WAL record|could not find a valid record)/.test(line))
  const named = [...(error ?? '').matchAll(/\b([0-9A-F]{1,8}\/[0-9A-F]{1,8})\b/g)].at(-1)?.[1]
  return (named ?? null) as Lsn | null
}

/** Names in pg_wal. Null where it is no directory of its own: a link is not followed. */
export function walNames(dataDirectory: string): string[] | null {
  try {
    return listBelow(dataDirectory, WAL)
  } catch {
    return null
  }
}

function readPart(dataDirectory: string, file: string, from: number, length: number): Buffer | null {
  let fd: number | null
  try {
    fd = openBelow(dataDirectory, `${WAL}/${file}`)
  } catch {
    return null
  }
  if (fd === null) return null
  try {
    const part = Buffer.alloc(length)
    return readSync(fd, part, 0, length, from) === length ? part : null
  } finally {
    closeSync(fd)
  }
}

export async function lookAtUpstream(ask: AskUpstream) {
  const [seen] = await ask<{ fpw: string; system: string; timeline: string | null }>(
    `select current_setting('full_page_writes') as fpw,
            (select system_identifier::text from pg_control_system()) as system,
            case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline`,
  )
  const { fpw, system, timeline } = seen ?? {}
  return {
    fullPageWrites: fpw === 'on',
    systemIdentifier: system,
    /** Of what it writes now, which its control file may not name yet; null in recovery. */
    timeline: timeline ? Number.parseInt(timeline, 16) : null,
  }
}
