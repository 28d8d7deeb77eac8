import { formatDuration, lsnDistance, type StandbySeen } from '@floe/domain'

/**
 * PostgreSQL's replay_lag as shown. It is null both for a standby that has replayed everything while nothing is written
 * and for one that has not answered yet: only the positions distinguish them.
 */
export function replayLagWords(
  seen: Pick<StandbySeen, 'replayLagMs' | 'replayedLsn'> | undefined,
  primaryEndLsn: string | null | undefined,
): string {
  if (!seen) return '–'
  if (seen.replayLagMs !== null) return formatDuration(seen.replayLagMs)
  const toReplay = lsnDistance(seen.replayedLsn, primaryEndLsn)
  return toReplay !== null && toReplay <= 0 ? '0 s' : '–'
}
