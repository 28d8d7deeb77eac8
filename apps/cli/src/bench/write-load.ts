import { PsqlSession } from './psql-session'

/**
 * Clients that insert numbered rows, each its own, over libpq's connection that finds the primary by itself, and remember
 * which rows were acknowledged. A row that was sent and not answered is in doubt: it counts as neither kept nor lost.
 */
export class WriteLoad {
  readonly acknowledged: string[] = []
  readonly #psql: string
  readonly #uri: () => string
  readonly #password: string
  readonly #sessions = new Set<PsqlSession>()
  readonly #done: Promise<void>
  #running = true
  /** Of each client: when its newest row was acknowledged. */
  readonly #newest: number[]
  #gaps: number[]

  constructor(psql: string, uri: () => string, password: string, clients: number) {
    this.#psql = psql
    this.#uri = uri
    this.#password = password
    this.#newest = Array.from({ length: clients }, () => performance.now())
    this.#gaps = Array.from({ length: clients }, () => 0)
    this.#done = Promise.all(this.#newest.map((_, i) => this.#client(i))).then(() => {})
  }

  /** Restarts the measurement. */
  reset(): void {
    this.#gaps = this.#gaps.map(() => 0)
  }

  /** The longest time that any client waited between two acknowledged rows since the last reset, ms. */
  longestGap(): number {
    return Math.max(
      ...this.#gaps.map((gap, i) => Math.max(gap, performance.now() - (this.#newest[i] as number))),
    )
  }

  /** Resolves with the moment at which every client had a row acknowledged that it sent after the call. */
  async allWrite(boundMs: number): Promise<number> {
    const since = performance.now()
    while (!this.#newest.every((at) => at > since)) {
      if (performance.now() - since > boundMs) throw new Error(`no client could write for ${boundMs} ms`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    return performance.now()
  }

  async stop(): Promise<void> {
    this.#running = false
    const late = setTimeout(() => {
      for (const s of this.#sessions) s.end()
    }, 5_000)
    await this.#done
    clearTimeout(late)
    for (const s of this.#sessions) s.end()
  }

  async #client(index: number): Promise<void> {
    let session: PsqlSession | null = null
    for (let n = 1; this.#running; n++) {
      if (!session || session.ended) {
        session = new PsqlSession(this.#psql, this.#uri(), this.#password)
        this.#sessions.add(session)
      }
      const id = `${index}-${n}`
      try {
        const answer = await session.run(`insert into ledger values ('${id}') returning id`)
        if (answer !== id) throw new Error(answer)
        const now = performance.now()
        this.acknowledged.push(id)
        this.#gaps[index] = Math.max(this.#gaps[index] as number, now - (this.#newest[index] as number))
        this.#newest[index] = now
      } catch {
        session.end()
        this.#sessions.delete(session)
        session = null
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    }
  }
}
