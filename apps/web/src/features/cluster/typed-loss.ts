import { type InstanceId, lossDoubts } from '@floe/domain'

/** What a failover to a standby would lose, as it stood when that standby was chosen. */
export type StatedLoss = { instanceId: InstanceId; bytes: number | null; at: number }

/** Blockers that are about a loss: one who accepts it passes them, and no other. */
export const isAboutLoss = ({ code }: { code: string }) => lossDoubts.includes(code)

/**
 * The loss a person accepts by what is typed, as it is sent; null while it accepts none. `stated`: the bytes that the page
 * names; null where it cannot know them. `silent`: the primary's host is out of reach, so nobody will know. Otherwise the
 * operation compares the number with what is missing once the primary is fenced, so a greater one may be typed.
 */
export function acceptedLoss(
  typed: string,
  stated: number | null,
  silent: boolean,
): number | 'unknown' | null {
  if (typed === 'unknown') return silent || stated === null ? 'unknown' : null
  if (silent || !/^\d{1,15}$/.test(typed)) return null
  const bytes = Number(typed)
  return bytes >= (stated ?? 0) ? bytes : null
}
