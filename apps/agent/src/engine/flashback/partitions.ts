import type pg from 'pg'
import partitionsSql from '../sql/partitions.sql'

type Link = { parent: number; until: number }

/** Partitions that are no more and are remembered. */
const FORMER_MAX = 20_000
/** Partitions of partitions of …: more is a lie of the engine's. */
const DEPTH_MAX = 32

/**
 * Which tables are part of which, as of when it was looked last, and what was part of one at an earlier look: WAL names partitions,
 * people name the table.
 */
export class Partitions {
  /** By partition. One that was detached or dropped counts for what happened until it was missed. */
  readonly #links = new Map<number, Link>()

  async look(client: pg.Client, now = Date.now()): Promise<void> {
    const { rows } = await client.query<{ child: number; parent: number }>(partitionsSql)
    this.see(rows, now)
  }

  see(links: readonly { child: number; parent: number }[], now: number): void {
    const there = new Set(links.map((l) => l.child))
    const former: number[] = []
    for (const [child, link] of this.#links) {
      if (there.has(child)) continue
      if (link.until === Number.POSITIVE_INFINITY) link.until = now
      former.push(child)
    }
    for (const { child, parent } of links) this.#links.set(child, { parent, until: Number.POSITIVE_INFINITY })
    for (const child of former.slice(0, Math.max(0, former.length - FORMER_MAX))) this.#links.delete(child)
  }

  get any(): boolean {
    return this.#links.size > 0
  }

  /** The tables that a table was part of at a moment, the outermost last. */
  above(table: number, at: number): number[] {
    const found: number[] = []
    for (let of = table; found.length < DEPTH_MAX; ) {
      const link = this.#links.get(of)
      if (!link || at > link.until) break
      found.push(link.parent)
      of = link.parent
    }
    return found
  }
}
