import { listBelow } from '../../host/tree'
import { readControlFile } from '../directory/control-file'
import type { Instance } from '../instance'

/**
 * The timeline that an instance is on, as it answers. Of one that does not, the newest that its control file or a history in
 * its WAL shows: a promotion writes the history of its timeline first, and the control file only with the next checkpoint.
 * Null where nothing of it can be read.
 */
export async function newestTimeline(instance: Instance): Promise<number | null> {
  const answered = instance.sampler.identity?.replication?.timeline
  if (answered != null) return answered
  const { dataDirectory } = instance.layout
  const control = await readControlFile(instance.enginePrefix, dataDirectory, instance.user).catch(() => null)
  const known = [
    control?.timeline,
    control?.minRecoveryTimeline,
    ...walNames(dataDirectory).map(timelineOfHistory),
  ].filter((timeline) => timeline != null)
  return known.length > 0 ? Math.max(...known) : null
}

function walNames(dataDirectory: string): string[] {
  try {
    return listBelow(dataDirectory, 'pg_wal')
  } catch {
    return []
  }
}

/** The timeline that a file of WAL is the history of, or null. */
export function timelineOfHistory(name: string): number | null {
  const digits = /^([0-9A-F]{8})\.history$/.exec(name)?.[1]
  return digits === undefined ? null : Number.parseInt(digits, 16)
}
