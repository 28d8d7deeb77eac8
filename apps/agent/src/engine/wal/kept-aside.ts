import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { compareLsn, fault, KeptAside, KeptAsideName, Lsn, lsnToBytes } from '@floe/domain'
import { removeFile, replaceFile } from '@floe/host/replace-file'
import { z } from 'zod'
import { readOwnedFile } from '../../host/owned-files'
import { runCommand } from '../../host/run-command'
import { isThere, removeTree } from '../../host/tree'
import type { Instance } from '../instance'
import { walFileName } from './wal-file'

/**
 * What was kept aside lies beside the data directory: a directory of the instance's user with the files, and next to it a
 * JSON file of root's own that says what they are. That file is written last and removed first: without it the directory is
 * a copy that was never finished.
 */
const Stored = KeptAside.extend({
  walSegmentBytes: z
    .number()
    .int()
    .min(2 ** 20)
    .max(2 ** 30),
  /** The timelines that the WAL goes through, in order; `end` is null where that is unknown. */
  stretches: z
    .array(z.object({ timeline: z.number().int(), begin: Lsn, end: Lsn.nullable() }))
    .min(1)
    .max(1_000),
})
export type StoredAside = z.infer<typeof Stored>

type Place = Pick<Instance, 'layout' | 'user'>

export const asideDirectory = ({ layout }: Pick<Place, 'layout'>, name: KeptAsideName): string =>
  join(layout.directory, name)
const descriptionOf = (place: Pick<Place, 'layout'>, name: KeptAsideName): string =>
  `${asideDirectory(place, name)}.json`

const namesIn = (place: Pick<Place, 'layout'>): string[] =>
  isThere(place.layout.directory) ? readdirSync(place.layout.directory) : []

/** Everything that is kept aside of an instance, the newest first. */
export function listKeptAside(place: Pick<Place, 'layout'>): StoredAside[] {
  return namesIn(place)
    .flatMap((file) => {
      const name = KeptAsideName.safeParse(file.replace(/\.json$/, ''))
      const found = file.endsWith('.json') && name.success ? findKeptAside(place, name.data) : null
      return found ? [found] : []
    })
    .sort((a, b) => b.at - a.at)
}

/** What is kept aside under a name; null where there is nothing. */
export function findKeptAside(place: Pick<Place, 'layout'>, name: KeptAsideName): StoredAside | null {
  const text = readOwnedFile(descriptionOf(place, name))
  return text === null ? null : Stored.parse(JSON.parse(text))
}

/** As it is reported: without what only the agent needs of it. */
export const told = (stored: StoredAside): KeptAside => KeptAside.parse(stored)

/** Makes a copy count, once all of it is on disk. */
export function describeKeptAside(place: Pick<Place, 'layout'>, stored: StoredAside): void {
  replaceFile(descriptionOf(place, stored.name), `${JSON.stringify(stored, null, 2)}\n`)
}

/** Removes what is kept aside under a name; missing is fine. */
export async function dropKeptAside(place: Place, name: KeptAsideName): Promise<boolean> {
  const there = isThere(descriptionOf(place, name))
  removeFile(descriptionOf(place, name))
  await removeTree(asideDirectory(place, name), place.user)
  return there
}

/** Removes copies that a killed or failed run has begun. */
export async function removeUnfinishedAside(place: Place): Promise<void> {
  for (const file of namesIn(place)) {
    const name = KeptAsideName.safeParse(file)
    if (name.success && !isThere(descriptionOf(place, name.data))) await dropKeptAside(place, name.data)
  }
}

type Stretch = StoredAside['stretches'][number]

/** Arguments by which pg_waldump reads a stretch; the last segment is named only where the end is known. */
const readingOf = (directory: string, { timeline, begin, end }: Stretch, segmentBytes: number): string[] => {
  const size = BigInt(segmentBytes)
  const name = (at: bigint) => walFileName(timeline, at / size, size)
  const files = [name(lsnToBytes(begin)), ...(end === null ? [] : [name(lsnToBytes(end) - 1n)])]
  return ['-p', directory, '-s', begin, ...(end === null ? [] : ['-e', end]), ...files]
}

/** The longest header of a page: as much may lie between where a stretch begins and its first record. */
const PAGE_HEADER_MAX_BYTES = 40

/** pg_waldump began at the first record, save for the header of a page. */
const beganThere = (stderr: string): boolean => {
  if (!/first record is after/.test(stderr)) return true
  const skipped = /skipping over (\d+) bytes?/.exec(stderr)?.[1]
  return skipped !== undefined && Number(skipped) <= PAGE_HEADER_MAX_BYTES
}

/**
 * How many transactions committed in these stretches, prepared ones too, by the engine's own reader. Null where one of them
 * could not be read from its beginning to its end within the bound.
 */
export async function countCommits(
  instance: Instance,
  directory: string,
  stretches: readonly Stretch[],
  o: { segmentBytes: number; boundMs: number; signal: AbortSignal },
): Promise<number | null> {
  const until = performance.now() + o.boundMs
  let commits = 0
  for (const stretch of stretches) {
    if (stretch.end === null) return null
    if (compareLsn(stretch.end, stretch.begin) <= 0) continue
    const left = until - performance.now()
    if (left <= 0) return null
    const r = await runCommand(
      join(instance.enginePrefix, 'bin', 'pg_waldump'),
      ['--rmgr=Transaction', '--stats=record', ...readingOf(directory, stretch, o.segmentBytes)],
      { user: instance.user, timeoutMs: left, signal: o.signal },
    )
    o.signal.throwIfAborted()
    if (r.status !== 0 || !beganThere(r.stderr)) return null
    for (const [, n] of r.stdout.matchAll(/^Transaction\/COMMIT(?:_PREPARED)?\s+(\d+) /gm))
      commits += Number(n)
  }
  return commits
}

/** Records that one piece is made of at most, and of how many the transactions are looked for. */
const RECORDS_AT_A_TIME = 500
const SEARCHED_AT_A_TIME = 4_000
/** A question takes no longer than a probe. */
const READ_BOUND_MS = 2_500
const LINE_MAX = 1_000
/** More than so many records with lines of their usual length. */
const OUTPUT_MAX_BYTES = 4 * 1024 * 1024

// what a stranger's WAL holds is not to move a terminal's cursor
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
const unprintable = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/** A piece of what is kept, from `from` on, as pg_waldump prints it. */
export async function readKeptAside(
  instance: Instance,
  { name, from, transactionsOnly }: { name: KeptAsideName; from: Lsn | null; transactionsOnly: boolean },
  signal: AbortSignal | undefined,
): Promise<{ records: string[]; next: Lsn | null; stopped: string | null }> {
  const stored = findKeptAside(instance, name)
  if (!stored)
    throw fault('keep_aside.not_found', `nothing is kept aside under the name "${name}"`, {
      hint: `Run "./floe instance kept-aside ${instance.registered.name}" to see what is.`,
    })
  const begin = from !== null && compareLsn(from, stored.fromLsn) > 0 ? from : stored.fromLsn
  const at = stored.stretches.findIndex(({ end }) => end === null || compareLsn(end, begin) > 0)
  const stretch = stored.stretches[at]
  if (!stretch) return { records: [], next: null, stopped: null }
  const most = transactionsOnly ? SEARCHED_AT_A_TIME : RECORDS_AT_A_TIME
  const start = compareLsn(begin, stretch.begin) > 0 ? begin : stretch.begin
  const r = await runCommand(
    join(instance.enginePrefix, 'bin', 'pg_waldump'),
    [
      '-n',
      String(most + 1),
      ...readingOf(asideDirectory(instance, name), { ...stretch, begin: start }, stored.walSegmentBytes),
    ],
    {
      user: instance.user,
      timeoutMs: READ_BOUND_MS,
      outputMaxBytes: OUTPUT_MAX_BYTES,
      ...(signal ? { signal } : {}),
    },
  )
  const lines = r.stdout.split('\n').slice(0, -1)
  const records = lines.filter((line) => lsnOf(line) !== null)
  const following = records[most] === undefined ? null : lsnOf(records[most])
  const shown = records
    .slice(0, most)
    .filter((line) => !transactionsOnly || /^rmgr: Transaction\b/.test(line))
    .map((line) => line.replace(unprintable, '?').slice(0, LINE_MAX))
  // never back: a record of a stranger's may look as if it lay elsewhere
  if (following !== null && compareLsn(following, start) > 0)
    return { records: shown, next: following, stopped: null }
  const whole = r.status === 0 && r.stdout.length < OUTPUT_MAX_BYTES
  const nextStretch = stored.stretches[at + 1]
  return {
    records: shown,
    next: whole && nextStretch ? nextStretch.begin : null,
    stopped: whole
      ? null
      : r.signal !== null
        ? 'pg_waldump did not end in time'
        : r.stderr.trim().split('\n').at(-1)?.replace(unprintable, '?').slice(0, LINE_MAX) ||
          'pg_waldump failed',
  }
}

const lsnOf = (line: string): Lsn | null =>
  (/^rmgr: \w+ .*?, lsn: ([0-9A-F]{1,8}\/[0-9A-F]{1,8}), /.exec(line)?.[1] ?? null) as Lsn | null
