import type { CommitMode } from '@floe/domain'

/** A commit that a member acknowledged to the witness. Times are ms of one clock. */
export type Accepted = { member: string; timeline: string; sentAt: number; acknowledgedAt: number }
/** A row of the ledger that was acknowledged. */
export type Row = { client: number; n: number; sentAt: number; acknowledgedAt: number }
/** What the product said of a loss before a person could rely on the opposite: a failover's verdict. */
export type Statement = {
  at: number
  kind: 'proven' | 'bounded' | 'unknown'
  /** Of `proven`: of which commits. */
  covers: 'disk' | 'standbys' | null
  /** Of `bounded`: at most so many bytes of WAL. */
  lossBytes: number | null
  /** Who the product said is not fenced, because its host is out of reach. */
  notFenced: string[]
}
export type Span = { from: number; to: number }
export type Overlap = Span & { one: string; other: string }

const identity = ({ member, timeline }: Accepted) => `${member} on timeline ${timeline}`

/**
 * Primaries that accepted commits at the same moment: each acknowledged one that was sent after the other had
 * acknowledged one already. A primary is a member on a timeline, so one that is promoted again is another.
 */
export function overlaps(accepted: readonly Accepted[]): Overlap[] {
  const primaries = new Map<string, { member: string; first: number; lastSent: number }>()
  for (const a of accepted) {
    const p = primaries.get(identity(a)) ?? { member: a.member, first: a.acknowledgedAt, lastSent: a.sentAt }
    p.first = Math.min(p.first, a.acknowledgedAt)
    p.lastSent = Math.max(p.lastSent, a.sentAt)
    primaries.set(identity(a), p)
  }
  const all = [...primaries.values()]
  return all.flatMap((one, i) =>
    all.slice(i + 1).flatMap((other) => {
      // one member is never two at once; it took the next timeline after the last
      if (one.member === other.member) return []
      const from = Math.max(one.first, other.first)
      const to = Math.min(one.lastSent, other.lastSent)
      return to > from ? [{ one: one.member, other: other.member, from, to }] : []
    }),
  )
}

/** Who accepted commits last before a moment; null where nobody had. */
export const primaryAt = (accepted: readonly Accepted[], at: number): string | null =>
  accepted.reduce<Accepted | null>(
    (last, a) => (a.acknowledgedAt < at && a.acknowledgedAt > (last?.acknowledgedAt ?? 0) ? a : last),
    null,
  )?.member ?? null

/** An overlap was said where a failover before it had named one of the two as not fenced. */
export const overlapWasSaid = (overlap: Overlap, statements: readonly Statement[]): boolean =>
  statements.some(
    (s) => s.at <= overlap.to && s.notFenced.some((name) => name === overlap.one || name === overlap.other),
  )

/** WAL that one row of the ledger takes at least: its heap record, its index record and its commit. */
export const ROW_WAL_BYTES = 120
/** Three times wal_writer_delay (200 ms), which commits at level `off` may lose in a crash, and what it takes to see one. */
const OFF_MS = 600 + 900

export type Loss = { rows: Row[]; unsaid: Row[]; why: string }

/**
 * Which lost rows nobody had been told of. A verdict `unknown` says that any may be lost, `bounded` so many bytes, `proven`
 * none of those that it covers. At level `off` the mode itself says that the last moments before the end of a primary may be.
 */
export function judgeLoss(
  lost: readonly Row[],
  statements: readonly Statement[],
  commitMode: CommitMode,
  primaryEnds: readonly number[],
): Loss {
  if (lost.length === 0) return { rows: [], unsaid: [], why: 'nothing is lost' }
  const rows = [...lost]
  const unknown = statements.find((s) => s.kind === 'unknown')
  if (unknown)
    return { rows, unsaid: [], why: 'the product said that the loss is unknown, and it was accepted' }
  const byMode =
    commitMode === 'off'
      ? rows.filter((r) => primaryEnds.some((end) => Math.abs(r.acknowledgedAt - end) <= OFF_MS))
      : []
  const left = rows.filter((r) => !byMode.includes(r))
  const bound = statements.reduce((sum, s) => sum + (s.kind === 'bounded' ? (s.lossBytes ?? 0) : 0), 0)
  const words = byMode.length > 0 ? `${byMode.length} within what the level "off" may lose; ` : ''
  if (left.length === 0) return { rows, unsaid: [], why: `${words}nothing else` }
  if (left.length * ROW_WAL_BYTES <= bound)
    return { rows, unsaid: [], why: `${words}${left.length} within the ${bound} bytes that were accepted` }
  const said =
    statements.length === 0
      ? 'no failover had said that anything could be lost'
      : `the product had said ${statements.map((s) => (s.kind === 'bounded' ? `at most ${s.lossBytes} bytes` : `${s.kind}, for commits on ${s.covers}`)).join(', ')}`
  return { rows, unsaid: left, why: `${words}${said}` }
}

/** The longest time that a client waited for a row, over all clients, between two moments. */
export function longestGap(rows: readonly Row[], clients: number, { from, to }: Span): number {
  let longest = 0
  for (let client = 0; client < clients; client++) {
    let before = from
    for (const { acknowledgedAt } of rows.filter((r) => r.client === client)) {
      if (acknowledgedAt < from || acknowledgedAt > to) continue
      longest = Math.max(longest, acknowledgedAt - before)
      before = acknowledgedAt
    }
    longest = Math.max(longest, to - before)
  }
  return longest
}

/** Spans longer than `ms` in which no member answered as a primary. */
export function withoutPrimary(seen: readonly number[], { from, to }: Span, ms: number): Span[] {
  const moments = [from, ...seen.filter((at) => at > from && at < to).sort((a, b) => a - b), to]
  return moments.flatMap((at, i) => {
    const next = moments[i + 1]
    return next !== undefined && next - at > ms ? [{ from: at, to: next }] : []
  })
}

/** Those of the spans in whose first `ms` the incident was not open. `open` is when it was. */
export const unsaidSpans = (spans: readonly Span[], open: readonly Span[], ms: number): Span[] =>
  spans.filter((span) => !open.some((o) => o.from <= span.from + ms && o.to >= span.from))
