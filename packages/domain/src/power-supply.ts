import { z } from 'zod'
import type { ClusterMember } from './cluster'
import { FLASHBACK_LOG_SOURCE, type Protection, type RepairSource } from './protection'

/** What a person calls the supply that a host depends on (a circuit, a rack, a site): hosts with the same one fail together. */
export const PowerSupply = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(63, 'must have at most 63 characters')
  .regex(/^[^\p{Cc}]*$/u, 'must not contain control characters')

/**
 * What a page repair source does not share with the instance: its own flashback log needs no other host; another member is
 * on the same host, on the same power supply, on another one, or nobody has said so.
 */
export const SourceApart = z.enum(['own-log', 'same-host', 'same-supply', 'other-supply', 'unknown-supply'])
export type SourceApart = z.infer<typeof SourceApart>

type Placed = Pick<ClusterMember, 'hostId' | 'powerSupply'>

/** How far a source is from the instance; null where no member is known by its address. */
export function apartOf(
  own: Placed | undefined,
  source: Pick<RepairSource, 'source'>,
  member: Placed | undefined,
): SourceApart | null {
  if (source.source === FLASHBACK_LOG_SOURCE) return 'own-log'
  if (!own || !member) return null
  if (own.hostId === member.hostId) return 'same-host'
  if (!own.powerSupply || !member.powerSupply) return 'unknown-supply'
  return own.powerSupply === member.powerSupply ? 'same-supply' : 'other-supply'
}

const apartTitles: Record<SourceApart, string> = {
  'own-log': 'needs no other host',
  'same-host': 'same host',
  'same-supply': 'other host, same power supply',
  'other-supply': 'other host, other power supply',
  'unknown-supply': 'other host, power supply unknown',
}

/** What a person reads of that, in a list of sources. */
export const apartTitle = (apart: SourceApart | null) =>
  apart === null ? 'power supply unknown' : apartTitles[apart]

/** Whether one failure can tear pages of the instance and of the source at once. */
export const sharesFailure = (apart: SourceApart | null) => apart === 'same-host' || apart === 'same-supply'

type PlacedSource = Pick<RepairSource, 'source' | 'healthy'> & { apart: SourceApart | null }

/**
 * Which failures of power the sources cover, while it is they that protect: the best of those that are healthy counts.
 * null where full-page images protect, or nothing does.
 */
export function powerFailureCover(
  protection: Pick<Protection, 'state'> & { sources: readonly PlacedSource[] },
): { tone: 'good' | 'neutral' | 'warn'; title: string; meaning: string } | null {
  const healthy = protection.sources.filter((s) => s.healthy)
  if (protection.state !== 'protected' || healthy.length === 0) return null
  const among = (apart: SourceApart | null) => healthy.some((s) => s.apart === apart)
  if (among('own-log'))
    return {
      tone: 'good',
      title: 'Power failure: covered',
      meaning:
        'The flashback log is the source that survives a power failure of every member: it is on this instance’s own disk.',
    }
  if (among('other-supply'))
    return {
      tone: 'good',
      title: 'Power failure: other supply',
      meaning:
        'A source is on another power supply, so a failure of one supply leaves it running. A failure of both at once can tear the same page on both.',
    }
  if (among('unknown-supply') || among(null))
    return {
      tone: 'neutral',
      title: 'Power failure: unknown',
      meaning:
        'Whether one power failure stops this instance and its sources at once is unknown: state the power supply of each host on its page, or with "./floe host power-supply".',
    }
  return {
    tone: 'warn',
    title: among('same-supply') ? 'Power failure: same supply' : 'Power failure: same host',
    meaning: `Every healthy source is on the same ${among('same-supply') ? 'power supply' : 'host'}: one failure can tear the same page on both, and neither could give it back. A source elsewhere, or a flashback log in sync mode, covers that.`,
  }
}
