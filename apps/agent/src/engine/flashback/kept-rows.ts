import { type FlashbackRows, fault } from '@floe/domain'

/** How long rows stay. */
export const ROWS_KEPT_MS = 15 * 60_000
/** Bytes of all together, and of one operation. */
const ALL_MAX_BYTES = 48 * 1024 * 1024
export const ONE_MAX_BYTES = 6 * 1024 * 1024
const COUNT_MAX = 64

/** A sample, with the key by which a merge selects it. */
export type KeptSample = FlashbackRows['samples'][number] & { key: string[] | null }

export type KeptRows = {
  instanceId: string
  database: string
  /** The table that was compared. */
  relation: number
  columns: string[]
  keyColumns: string[] | null
  samples: KeptSample[]
  conflictExample: string | null
  bytes: number
}

/**
 * Rows that operations of this agent have seen, by their ids: in memory only, some minutes, and no more than fits. A restart of
 * the agent forgets them.
 */
export class RowsInMemory {
  readonly #kept = new Map<string, { until: number; rows: KeptRows }>()

  put(operationId: string, rows: KeptRows, now = Date.now()): void {
    this.#kept.delete(operationId)
    this.#forget(now)
    this.#kept.set(operationId, { until: now + ROWS_KEPT_MS, rows })
    const bytes = () => [...this.#kept.values()].reduce((sum, k) => sum + k.rows.bytes, 0)
    // the oldest first; the newest has a bound of its own
    while (this.#kept.size > COUNT_MAX || (bytes() > ALL_MAX_BYTES && this.#kept.size > 1))
      this.#kept.delete(this.#kept.keys().next().value as string)
  }

  /** Throws `flashback.rows_gone`. */
  get(operationId: string, now = Date.now()): KeptRows {
    this.#forget(now)
    const kept = this.#kept.get(operationId)
    if (!kept)
      throw fault('flashback.rows_gone', 'the rows of this operation are no longer kept', {
        detail: 'They stay in the memory of the host’s agent for 15 minutes, and are stored nowhere.',
        hint: 'Preview or compare again.',
      })
    return kept.rows
  }

  #forget(now: number): void {
    for (const [id, { until }] of this.#kept) if (until <= now) this.#kept.delete(id)
  }
}
