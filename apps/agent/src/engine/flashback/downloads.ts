import { fault } from '@floe/domain'
import type pg from 'pg'
import type { EngineAddress } from '../process/connection'
import { abandon } from '../process/patience'
import { connectDatabase } from './database-session'
import { engineFault } from './engine-fault'
import { requireFunctions } from './functions'
import { ROWS_KEPT_MS } from './kept-rows'
import { requireResult } from './results'

/** What an export opened. */
type Opened = {
  instanceId: string
  address: EngineAddress
  database: string
  result: number
  resultName: string
  until: number
}
export type Piece = { text: string; next: number | null }

/** Characters of one piece: no half of a pair is sent alone. */
const PIECE_MAX = 128 * 1024
/** The engine may take longer than a question to an agent does. */
const ANSWER_MS = 1_500
/** Nobody asks for the next piece: whoever read is gone. */
const IDLE_MS = 30_000
/** A pass over a table keeps what VACUUM would remove: it ends after so long. */
const PASS_MAX_MS = 6 * 3_600_000
const PASSES_MAX = 2
const OPENED_MAX = 200

/** A pass over the rows of a result: one connection and one cursor, which fetches only when it is asked for more. */
class Pass {
  readonly instanceId: string
  readonly #close: () => void
  #client: pg.Client | null = null
  #rest = ''
  #ended = false
  #piece = 0
  #last: Piece = { text: '', next: 0 }
  #fetching: Promise<Piece> | null = null
  readonly #idle: NodeJS.Timeout
  readonly #most: NodeJS.Timeout
  #closed = false

  constructor(
    readonly opened: Opened,
    onClosed: () => void,
  ) {
    this.instanceId = opened.instanceId
    this.#close = onClosed
    this.#idle = setTimeout(() => this.close(), IDLE_MS)
    this.#idle.unref()
    this.#most = setTimeout(() => this.close(), PASS_MAX_MS)
    this.#most.unref()
  }

  /** The piece, the one before it once more, or no text where the engine has not come to it yet. */
  async read(piece: number): Promise<Piece> {
    this.#idle.refresh()
    if (piece === this.#piece - 1) return this.#last
    if (piece !== this.#piece) throw gone()
    this.#fetching ??= this.#fetch().catch((error: unknown) => {
      // it stays until somebody was informed, or asks no more
      this.#release()
      throw engineFault(error)
    })
    const fetching = this.#fetching
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<null>((resolve) => {
      timer = setTimeout(resolve, ANSWER_MS, null)
    })
    const answer = await Promise.race([fetching, late])
      .catch((error: unknown) => {
        this.close()
        throw error
      })
      .finally(() => clearTimeout(timer))
    if (answer === null) {
      // its failure is for the next question
      fetching.catch(() => {})
      return { text: '', next: piece }
    }
    this.#fetching = null
    this.#piece++
    this.#last = answer
    if (answer.next === null) this.close()
    return answer
  }

  async #fetch(): Promise<Piece> {
    this.#client ??= await this.#begin()
    while (this.#rest.length < PIECE_MAX && !this.#ended) {
      const { rows } = await this.#client.query<{ csv: string }>('fetch 1 from rows')
      this.#ended = rows.length === 0
      this.#rest += rows[0]?.csv ?? ''
    }
    let end = Math.min(PIECE_MAX, this.#rest.length)
    const last = this.#rest.charCodeAt(end - 1)
    if (end < this.#rest.length && last >= 0xd800 && last < 0xdc00) end--
    const text = this.#rest.slice(0, end)
    this.#rest = this.#rest.slice(end)
    return { text, next: this.#ended && this.#rest === '' ? null : this.#piece + 1 }
  }

  async #begin(): Promise<pg.Client> {
    const { address, database, result } = this.opened
    const client = await connectDatabase(address, database, 0)
    if (this.#closed) {
      abandon(client)
      throw gone()
    }
    this.#client = client
    await client.query('begin read only')
    const functions = await requireFunctions(client, database)
    await requireResult(client, functions, this.opened)
    // one value a row, so that the engine holds none but the one that is fetched
    const rows = functions.within('select polar_flashback_csv($1::oid::regclass, null::text) as csv')
    await client.query(`declare rows no scroll cursor for ${rows}`.replace('$1', String(result)))
    return client
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#idle)
    clearTimeout(this.#most)
    this.#release()
    this.#close()
  }

  /** Its backend sees that within half a second, also in the middle of a statement. */
  #release(): void {
    if (this.#client) abandon(this.#client)
  }
}

const gone = () =>
  fault('flashback.download_gone', 'the download is no longer open', {
    hint: 'Export again: it stays open for 15 minutes.',
  })

/** Results that exports opened, and who reads them. In memory only: a restart of the agent closes all. */
export class Downloads {
  readonly #opened = new Map<string, Opened>()
  readonly #passes = new Map<string, Pass>()

  /** Answers until when it may be begun to be read. */
  open(operationId: string, of: Omit<Opened, 'until'>, now = Date.now()): number {
    this.#forget(now)
    const until = now + ROWS_KEPT_MS
    this.#opened.delete(operationId)
    this.#opened.set(operationId, { ...of, until })
    if (this.#opened.size > OPENED_MAX) this.#opened.delete(this.#opened.keys().next().value as string)
    return until
  }

  async read(asked: { operationId: string; download: string; piece: number; end: boolean }): Promise<Piece> {
    const id = `${asked.operationId} ${asked.download}`
    const pass = this.#passes.get(id)
    if (asked.end) {
      pass?.close()
      return { text: '', next: null }
    }
    if (pass) return pass.read(asked.piece)
    this.#forget(Date.now())
    const opened = this.#opened.get(asked.operationId)
    if (!opened || asked.piece !== 0) throw gone()
    const ofInstance = [...this.#passes.values()].filter((p) => p.instanceId === opened.instanceId)
    if (ofInstance.length >= PASSES_MAX)
      throw fault(
        'flashback.too_many_downloads',
        'too many results of this instance are downloaded at once',
        {
          hint: 'Try again when one of them has ended.',
        },
      )
    const begun = new Pass(opened, () => this.#passes.delete(id))
    this.#passes.set(id, begun)
    return begun.read(0)
  }

  close(): void {
    for (const pass of this.#passes.values()) pass.close()
  }

  #forget(now: number): void {
    for (const [id, { until }] of this.#opened) if (until <= now) this.#opened.delete(id)
  }
}
