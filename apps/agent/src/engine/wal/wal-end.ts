import {
  compareLsn,
  historyFileName,
  type Lsn,
  lsnToBytes,
  parseTimelineHistory,
  type TimelineEnd,
  type WalPosition,
} from '@floe/domain'
import { readOwnedFileBelow } from '../../host/owned-files'
import { type ControlFile, readControlFile, wasStandby } from '../directory/control-file'
import type { Instance } from '../instance'
import type { Work } from '../work'
import { endOfWal, walNames } from './compare-histories'

/** Where the timelines before this one ended, by the history file beside its WAL; null where that cannot be read. */
export function ancestorsOf(dataDirectory: string, timeline: number): TimelineEnd[] | null {
  if (timeline === 1) return []
  try {
    const text = readOwnedFileBelow(dataDirectory, `pg_wal/${historyFileName(timeline)}`)
    return text === null ? null : parseTimelineHistory(text)
  } catch {
    return null
  }
}

/** As the engine knows them; `received` is null while it has received nothing since its start. */
export type Recovered = { received: Lsn | null; replayed: Lsn }

/**
 * The end of the WAL on a standby's disk. What it has received counts, and what of it is there from before its start: a
 * receiver runs only once all of that is replayed. Null where that is not known for certain.
 */
export async function endOnStandby(
  instance: Instance,
  context: Work,
  { received, replayed }: Recovered,
  boundMs?: number,
): Promise<WalPosition | null> {
  const { dataDirectory } = instance.layout
  const control = await readControlFile(instance.enginePrefix, dataDirectory, instance.user)
  const names = walNames(dataDirectory)
  if (!control || names === null) return null
  const timeline = newestTimeline(names, replayed, BigInt(control.walSegmentBytes))
  const ancestors = timeline === null ? null : ancestorsOf(dataDirectory, timeline)
  if (timeline === null || ancestors === null || !cameAlong(control, timeline, ancestors)) return null
  if (received !== null)
    return { timeline, ancestors, lsn: compareLsn(received, replayed) > 0 ? received : replayed }
  const begin = ancestors.at(-1)?.end
  const start = begin && compareLsn(begin, replayed) > 0 ? begin : replayed
  const lsn = await endOfWal(instance, context, { timeline, start, ...bounded(boundMs) })
  return lsn && { timeline, ancestors, lsn }
}

const bounded = (boundMs: number | undefined) => (boundMs === undefined ? {} : { boundMs })

/** The end of the WAL of an instance that was ended; null where that is not known, or not within `boundMs`. */
export async function endOfEnded(
  instance: Instance,
  context: Work,
  boundMs?: number,
): Promise<WalPosition | null> {
  const { dataDirectory } = instance.layout
  const control = await readControlFile(instance.enginePrefix, dataDirectory, instance.user)
  if (!control) return null
  if (wasStandby(control))
    return endOnStandby(
      instance,
      context,
      { received: null, replayed: control.minRecoveryLsn as Lsn },
      boundMs,
    )
  // one that was promoted just now names its timeline here before its first checkpoint does
  const timeline = Math.max(control.timeline, control.minRecoveryTimeline)
  const ancestors = ancestorsOf(dataDirectory, timeline)
  const lsn = ancestors && (await endOfWal(instance, context, { timeline, ...bounded(boundMs) }))
  return lsn && { timeline, ancestors, lsn }
}

/** The newest timeline that there is WAL of from where recovery stands: recovery goes there, and only a receiver writes it. */
function newestTimeline(names: readonly string[], from: Lsn, segmentBytes: bigint): number | null {
  const first = (lsnToBytes(from) - 1n) / segmentBytes
  const perPart = 0x1_0000_0000n / segmentBytes
  let newest: number | null = null
  for (const name of names) {
    const [, timeline, high, low] = /^([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})$/.exec(name) ?? []
    if (!timeline || BigInt(`0x${high}`) * perPart + BigInt(`0x${low}`) < first) continue
    newest = Math.max(newest ?? 0, Number.parseInt(timeline, 16))
  }
  return newest
}

/** Whether what the control file says of recovery lies on the history of this timeline. */
function cameAlong(control: ControlFile, timeline: number, ancestors: readonly TimelineEnd[]): boolean {
  const timelineAt = (lsn: string, isEnd: boolean) =>
    ancestors.find((a) => (isEnd ? compareLsn(lsn, a.end) <= 0 : compareLsn(lsn, a.end) < 0))?.timeline ??
    timeline
  return (
    timelineAt(control.checkpointLsn, false) === control.timeline &&
    (control.minRecoveryTimeline === 0 ||
      timelineAt(control.minRecoveryLsn, true) === control.minRecoveryTimeline)
  )
}
