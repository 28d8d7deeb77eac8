import { z } from 'zod'
import { compareLsn, Lsn } from '../lsn'

/** Of a switchover's result: the last record of the former primary, and how far the other one had come when it was promoted. */
const Ends = z.object({ shutdownLsn: Lsn, endLsn: Lsn })

/**
 * Why nothing is lost by a switchover, as sentences, by what its steps have answered: the former primary ended in order, and
 * the one that was promoted had its last record. Null where they do not say so; then nothing is said about it.
 */
export function switchoverProof(result: unknown, candidate: string): string[] | null {
  const { data: ends } = Ends.safeParse(result)
  // a record begins where it lies: who has it has WAL beyond that
  if (!ends || compareLsn(ends.endLsn, ends.shutdownLsn) <= 0) return null
  return [
    `"${candidate}" holds every commit that was acknowledged: nothing is lost.`,
    `The former primary was shut down in order; the last record of its WAL is the checkpoint at ${ends.shutdownLsn}.`,
    `"${candidate}" had WAL up to ${ends.endLsn}, and had replayed that checkpoint before it was promoted.`,
  ]
}
