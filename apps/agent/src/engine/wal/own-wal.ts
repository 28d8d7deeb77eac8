import type { Upstream } from '@floe/agent-contract'
import {
  along,
  beginningOf,
  compareLsn,
  fault,
  type Lsn,
  lsnDistance,
  parseTimelineHistory,
  type Timeline,
  type WalPosition,
} from '@floe/domain'
import { upstreamAsker } from '../cluster/ask-upstream'
import { type ControlFile, readControlFile, wasStandby } from '../directory/control-file'
import type { Instance } from '../instance'
import type { Work } from '../work'
import {
  compareBefore,
  compareEnd,
  historyOfUpstream,
  laterHistory,
  lookAtUpstream,
  walNames,
} from './compare-histories'
import { ancestorsOf, endOfEnded } from './wal-end'

/** A stretch of WAL on one timeline; `end` is null where that is unknown. */
export type Stretch = { timeline: number; begin: Lsn; end: Lsn | null }

/** What of a member's WAL its primary does not have. */
export type OwnWal = {
  /** On its own timelines from the fork on; where that is unknown, all of them. Empty: it has none. */
  stretches: Stretch[]
  forkLsn: Lsn | null
  endLsn: Lsn | null
  /** What is unknown, and why; null where nothing is. */
  unknown: string | null
  systemIdentifier: string
  segmentBytes: number
  timeline: number
  primaryTimeline: number
}

/** An isolated primary may have written for long; pg_waldump reads some hundred megabytes in a second. */
const END_BOUND_MS = 600_000

const unreadable = (instance: Instance, detail: string) =>
  fault(
    'keep_aside.unreadable',
    `the WAL that only instance "${instance.registered.name}" has cannot be determined`,
    {
      detail,
      hint: discardHint(instance, 'Nothing was changed.'),
    },
  )

/** How a person says that it may be lost. */
export const discardHint = (instance: Instance, first: string) =>
  `${first} To rejoin it and lose what only it had, run "./floe standby rejoin ${instance.registered.name} --discard-own".`

/**
 * Finds where a stopped member's history left its primary's, by the histories of both, and by its WAL where two timelines
 * share a number. What is not known is said, and then all WAL on its disk is taken for its own: rather too much than too
 * little. Throws where not even that can be read.
 */
export async function ownWal(instance: Instance, upstream: Upstream, context: Work): Promise<OwnWal> {
  const { dataDirectory } = instance.layout
  const control = await readControlFile(instance.enginePrefix, dataDirectory, instance.user)
  if (!control || !isSegmentSize(control.walSegmentBytes))
    throw unreadable(instance, 'Its control file cannot be read.')
  if (walNames(dataDirectory) === null)
    throw unreadable(instance, 'Its WAL cannot be listed: "pg_wal" is no directory of its own.')
  const ask = upstreamAsker(upstream, instance, context.signal)
  const seen = await lookAtUpstream(ask)
  if (seen.timeline === null)
    throw fault('keep_aside.no_primary', `${upstream.host}:${upstream.port} is a standby, not a primary`, {
      hint: 'Try again once it has been promoted.',
    })
  if (seen.systemIdentifier !== control.systemIdentifier)
    throw unreadable(
      instance,
      'Its system identifier is not the primary’s: what is there is no copy of the same system.',
    )
  const text = seen.timeline === 1 ? '' : await historyOfUpstream(ask, seen.timeline)
  const ancestors = text === null ? null : parseTimelineHistory(text)
  if (ancestors === null) throw unreadable(instance, 'The history of the primary’s timeline cannot be read.')
  const primary: Timeline = { timeline: seen.timeline, ancestors }

  const end = await endOfEnded(instance, context, END_BOUND_MS)
  const timeline = Math.max(control.timeline, control.minRecoveryTimeline)
  const known: Judging = { control, end, timeline, primary }
  const base = {
    systemIdentifier: control.systemIdentifier,
    segmentBytes: control.walSegmentBytes,
    timeline: end?.timeline ?? timeline,
    primaryTimeline: seen.timeline,
  }
  const judged = { control, dataDirectory, timeline: base.timeline, upstreamTimeline: seen.timeline }
  const left = forkOf(known) ?? forkWithoutEnd(known, dataDirectory)
  if (left !== null || base.timeline !== seen.timeline) {
    // timelines of one number may be two, and then they parted before
    const differs = await compareBefore(judged, ask, instance, context)
    if (differs !== null) return { ...base, ...everything(known, differs, dataDirectory) }
  }
  if (left !== null) return { ...base, ...fromFork(left, known, dataDirectory) }
  if (base.timeline === seen.timeline) {
    if (!wasStandby(control)) return { ...base, ...sameNumber(known, dataDirectory) }
    const later = laterHistory(judged)
    if (later !== null) return { ...base, ...everything(known, later, dataDirectory) }
    const found = await compareEnd(judged, ask, instance, context)
    if (found?.mayBeOwn) return { ...base, ...everything(known, found.why, dataDirectory) }
    if (found) context.log(`not compared: ${found.why}`)
    return { ...base, ...nothing(known) }
  }
  if (end === null)
    return { ...base, ...everything(known, 'where its WAL ends could not be read', dataDirectory) }
  return { ...base, ...nothing(known) }
}

type Judging = { control: ControlFile; end: WalPosition | null; timeline: number; primary: Timeline }
type Found = Pick<OwnWal, 'stretches' | 'forkLsn' | 'endLsn' | 'unknown'>

const isSegmentSize = (bytes: number): boolean =>
  bytes >= 2 ** 20 && bytes <= 2 ** 30 && Number.isInteger(Math.log2(bytes))

const nothing = ({ end }: Judging): Found => ({
  stretches: [],
  forkLsn: null,
  endLsn: end?.lsn ?? null,
  unknown: null,
})

/** Where its WAL leaves the primary's history; null where it does not, or where that is unknown. */
function forkOf({ end, primary }: Judging): Lsn | null {
  const found = along(end, primary)
  return found?.left && compareLsn(found.reach.lsn, '0/0') > 0 ? found.reach.lsn : null
}

const FAR = 'FFFFFFFF/FFFFFFFF' as Lsn

/** The same by the timelines alone, where the end of its WAL could not be read. */
function forkWithoutEnd({ end, timeline, primary }: Judging, dataDirectory: string): Lsn | null {
  if (end !== null) return null
  const ancestors = ancestorsOf(dataDirectory, timeline)
  return forkOf({ end: { timeline, ancestors, lsn: FAR }, primary } as Judging)
}

/** Two primaries whose timelines share a number: both began where that one did, and have nothing in common after it. */
function sameNumber(known: Judging, dataDirectory: string): Found {
  const ancestors = ancestorsOf(dataDirectory, known.timeline)
  const begin = beginningOf({ timeline: known.timeline, ancestors })
  if (!begin || ancestors?.length === 0)
    return everything(
      known,
      `it was a primary on timeline ${known.timeline}, as the primary is now: two histories`,
      dataDirectory,
    )
  return fromFork(begin.lsn, known, dataDirectory)
}

/** Everything after the fork, by the timelines that it went through. */
function fromFork(forkLsn: Lsn, { end, timeline }: Judging, dataDirectory: string): Found {
  const last = end?.timeline ?? timeline
  const ancestors = end?.ancestors ?? ancestorsOf(dataDirectory, last) ?? []
  const stretches: Stretch[] = []
  let begin = forkLsn
  for (const ancestor of ancestors) {
    if (compareLsn(ancestor.end, begin) <= 0) continue
    stretches.push({ timeline: ancestor.timeline, begin, end: ancestor.end })
    begin = ancestor.end
  }
  stretches.push({ timeline: last, begin, end: end?.lsn ?? null })
  const unknown = end === null ? 'where its WAL ends could not be read' : null
  return { stretches, forkLsn, endLsn: end?.lsn ?? null, unknown }
}

/** Where the fork is unknown: all that is on its disk. */
const everything = (known: Judging, why: string, dataDirectory: string): Found => ({
  ...fromFork('0/0' as Lsn, known, dataDirectory),
  forkLsn: null,
  unknown: `where its history left the primary’s is not known: ${why}`,
})

/** Bytes that only it has; null where one of their ends is unknown. */
export const ownBytes = ({ stretches, forkLsn, endLsn }: OwnWal): number | null => {
  if (stretches.length === 0) return 0
  return forkLsn !== null && endLsn !== null ? lsnDistance(forkLsn, endLsn) : null
}
