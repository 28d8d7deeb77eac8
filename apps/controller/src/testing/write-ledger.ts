import pg from 'pg'
import { clientTls } from './client-tls'

/** Over TLS, unless `ssl` says otherwise. */
export type LedgerTarget = { user: string; password: string; database: string; ssl?: false }

/**
 * A client that writes numbered rows, one after the other, to whichever member is the primary, and remembers which were
 * acknowledged. What it was not told is in doubt and counts as neither. Gaps between acknowledgements are what a client
 * feels of a change of primary.
 */
export class WriteLedger {
  readonly acknowledged: number[] = []
  readonly #target: LedgerTarget
  readonly #addresses: () => { host: string; port: number }[]
  readonly #everyMs: number
  #next: number
  #running = true
  #client: pg.Client | null = null
  #lastAt = performance.now()
  #longestGap = 0
  readonly #done: Promise<void>

  /**
   * @param everyMs the pause between two rows; without one it writes as fast as it can.
   * @param first the number of its first row: two ledgers share a table.
   */
  constructor(
    target: LedgerTarget,
    addresses: () => { host: string; port: number }[],
    everyMs = 0,
    first = 1,
  ) {
    this.#next = first
    this.#everyMs = everyMs
    this.#target = target
    this.#addresses = addresses
    this.#done = this.#write()
  }

  /** Longest time between two acknowledged rows since the last call, ms. */
  takeLongestGap(): number {
    const gap = Math.max(this.#longestGap, performance.now() - this.#lastAt)
    this.#longestGap = 0
    return gap
  }

  /** True when a row was acknowledged after this call began. */
  async writesAgain(boundMs: number): Promise<boolean> {
    const before = this.acknowledged.length
    const deadline = performance.now() + boundMs
    while (performance.now() < deadline) {
      if (this.acknowledged.length > before) return true
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    return false
  }

  async stop(): Promise<void> {
    this.#running = false
    const client = this.#client
    await Promise.race([this.#done, new Promise((resolve) => setTimeout(resolve, 3_000))])
    await client?.end().catch(() => {})
  }

  async #write(): Promise<void> {
    while (this.#running) {
      this.#client ??= await this.#connect()
      if (!this.#client) {
        await new Promise((resolve) => setTimeout(resolve, 20))
        continue
      }
      if (this.#everyMs > 0) await new Promise((resolve) => setTimeout(resolve, this.#everyMs))
      const n = this.#next++
      try {
        await this.#client.query('insert into ledger values ($1)', [n])
        this.acknowledged.push(n)
        const now = performance.now()
        this.#longestGap = Math.max(this.#longestGap, now - this.#lastAt)
        this.#lastAt = now
      } catch {
        await this.#client.end().catch(() => {})
        this.#client = null
      }
    }
  }

  /** As libpq does with target_session_attrs=read-write: each address until one takes writes. */
  async #connect(): Promise<pg.Client | null> {
    for (const address of this.#addresses()) {
      const client = new pg.Client({
        ...clientTls,
        ...address,
        ...this.#target,
        connectionTimeoutMillis: 1_000,
        query_timeout: 20_000,
      })
      client.on('error', () => {})
      try {
        await client.connect()
        const { rows } = await client.query('show transaction_read_only')
        if (rows[0]?.transaction_read_only === 'off') return client
      } catch {
        // the next one
      }
      await client.end().catch(() => {})
    }
    return null
  }
}
