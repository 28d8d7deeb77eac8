import type { PsqlSession } from '../psql-session'
import type { Row } from './judge'

const AGAIN_MS = 200
/** Between two rows of a client: the ledger is to see every moment, not to load the machine. */
const BETWEEN_MS = 20

export const LEDGER = 'chaos_ledger'
export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** Answers as the promise does, or rejects after so long. */
export function within<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: no answer within ${ms} ms`)), ms)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/**
 * Clients that insert numbered rows over the cluster's own connection string and note which were acknowledged, when. A row
 * that was sent and not answered is in doubt: it counts as neither kept nor lost.
 */
export class Ledger {
  readonly rows: Row[] = []
  readonly clients: number
  sent = 0
  readonly #round: number
  readonly #connect: () => PsqlSession
  readonly #statementMs: number
  readonly #done: Promise<unknown>
  readonly #sessions = new Set<PsqlSession>()
  readonly #newest: number[]
  #running = true

  /** After `statementMs` without an answer a client gives a statement up, as an application does; its row is in doubt then. */
  constructor(round: number, clients: number, connect: () => PsqlSession, statementMs: number) {
    this.#round = round
    this.#statementMs = statementMs
    this.clients = clients
    this.#connect = connect
    this.#newest = Array.from({ length: clients }, () => 0)
    this.#done = Promise.all(this.#newest.map((_, client) => this.#write(client)))
  }

  /** Whether every client has a row acknowledged that it sent after the call, within so long. */
  async allWrite(boundMs: number): Promise<boolean> {
    const since = performance.now()
    while (!this.#newest.every((sentAt) => sentAt > since)) {
      if (performance.now() - since > boundMs) return false
      await pause(20)
    }
    return true
  }

  async stop(): Promise<void> {
    this.#running = false
    const late = setTimeout(() => {
      for (const s of this.#sessions) s.end()
    }, 2_000)
    await this.#done
    clearTimeout(late)
    for (const s of this.#sessions) s.end()
  }

  async #write(client: number): Promise<void> {
    let session: PsqlSession | null = null
    for (let n = 1; this.#running; n++) {
      if (session === null || session.ended) {
        session = this.#connect()
        this.#sessions.add(session)
      }
      const sentAt = performance.now()
      this.sent++
      try {
        const insert = `insert into ${LEDGER} values (${this.#round}, ${client}, ${n}) returning n`
        const answer = await within(session.run(insert), this.#statementMs, 'insert')
        if (answer !== String(n)) throw new Error(answer)
        this.rows.push({ client, n, sentAt, acknowledgedAt: performance.now() })
        this.#newest[client] = sentAt
        await pause(BETWEEN_MS)
      } catch {
        session.end()
        this.#sessions.delete(session)
        session = null
        if (this.#running) await pause(AGAIN_MS)
      }
    }
  }
}
