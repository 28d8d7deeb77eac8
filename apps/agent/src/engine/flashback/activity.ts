import { compareLsn, type FlashbackEvent } from '@floe/domain'
import type pg from 'pg'
import { sqlState } from '../process/connection'
import activitySql from '../sql/flashback-activity.sql'
import tableNamesSql from '../sql/table-names.sql'
import walWrittenSql from '../sql/wal-written.sql'
import { requireFunctions } from './functions'

/**
 * WAL of one question to the engine, less where a host does not read that within its deadline; and how long a call goes on
 * asking: its answer has to come within 3 s.
 */
const PIECE_BYTES = 32 * 1024 * 1024
const PIECE_MIN_BYTES = 1024 * 1024
const CALL_MS = 1_500
/** Changes of fewer rows are no event. */
const LEAST_ROWS = 1_000
const EVENTS_MAX = 1_000
const TABLES_MAX = 10_000
const DATABASES_MAX = 16

type Row = {
  kind: FlashbackEvent['kind'] | 'last' | 'end'
  at: number | null
  lsn: string | null
  relation: number | null
  inserted: number | null
  updated: number | null
  deleted: number | null
}
type Event = Omit<FlashbackEvent, 'tableName'>

/** What was read of a database's WAL so far. */
class History {
  /** The newest last. */
  events: Event[] = []
  lastChange = new Map<number, number>()
  next: string | null = null
  /** Where the window began when this was begun to be read. */
  from: number | null = null
  to: number | null = null
  complete = false
  pieceBytes = PIECE_BYTES
  reading: Promise<void> | null = null

  /** Takes in what a piece has. */
  take(rows: readonly Row[]): void {
    for (const { kind, at, lsn, relation, inserted, updated, deleted } of rows) {
      if (kind === 'end') {
        if (lsn !== null) this.next = lsn
        if (at !== null) this.to = at
      } else if (kind === 'last') {
        if (relation && at !== null) this.#changed(relation, at)
      } else if (relation && at !== null) {
        this.events.push({
          kind,
          at,
          table: relation,
          inserted: inserted ?? 0,
          updated: updated ?? 0,
          deleted: deleted ?? 0,
        })
      }
    }
    this.events.sort((a, b) => a.at - b.at)
    if (this.events.length > EVENTS_MAX) this.events = this.events.slice(-EVENTS_MAX)
  }

  #changed(relation: number, at: number): void {
    this.lastChange.delete(relation)
    this.lastChange.set(relation, Math.max(at, this.lastChange.get(relation) ?? 0))
    if (this.lastChange.size > TABLES_MAX)
      this.lastChange.delete(this.lastChange.keys().next().value as number)
  }
}

export type ActivityRead = {
  events: FlashbackEvent[]
  coveredFrom: number | null
  coveredTo: number | null
  complete: boolean
}

/**
 * What happened to the tables of databases, by their WAL. Each call reads on for a moment from where the last one ended, and at
 * most one at a time reads a database; a restart of the agent begins anew.
 */
export class Activity {
  readonly #histories = new Map<string, History>()

  #historyOf(instanceId: string, database: string): History {
    const key = `${instanceId} ${database}`
    const history = this.#histories.get(key) ?? new History()
    this.#histories.delete(key)
    this.#histories.set(key, history)
    if (this.#histories.size > DATABASES_MAX)
      this.#histories.delete(this.#histories.keys().next().value as string)
    return history
  }

  /** When a table was changed last, in what was read so far; null where that has none. */
  lastChange(instanceId: string, database: string): (table: number) => number | null {
    const history = this.#histories.get(`${instanceId} ${database}`)
    return (table) => history?.lastChange.get(table) ?? null
  }

  async read(
    client: pg.Client,
    asked: { instanceId: string; database: string; table: number | null; windowFrom: number | null },
  ): Promise<ActivityRead> {
    const history = this.#historyOf(asked.instanceId, asked.database)
    history.reading ??= this.#readOn(client, asked.database, history)
      .catch((error: unknown) => {
        // where it was to go on may be gone, e.g. with the timeline: the next call begins anew
        this.#histories.delete(`${asked.instanceId} ${asked.database}`)
        throw error
      })
      .finally(() => {
        history.reading = null
      })
    await history.reading
    if (history.next !== null) history.from ??= asked.windowFrom
    const since = asked.windowFrom ?? 0
    const events = history.events.filter(
      (e) => e.at >= since && (asked.table === null || e.table === asked.table),
    )
    const numbers = [...new Set(events.map((e) => e.table))]
    const { rows } = await client.query<{ oid: number; name: string }>(tableNamesSql, [numbers])
    const names = new Map(rows.map((r) => [r.oid, r.name]))
    return {
      events: events.map((e) => ({ ...e, tableName: names.get(e.table) ?? null })).reverse(),
      coveredFrom: history.from === null ? null : Math.max(history.from, since),
      coveredTo: history.to,
      complete: history.complete,
    }
  }

  async #readOn(client: pg.Client, database: string, history: History): Promise<void> {
    const sql = (await requireFunctions(client, database)).within(activitySql)
    const until = performance.now() + CALL_MS
    const [{ lsn: end } = { lsn: '0/0' }] = (await client.query<{ lsn: string }>(walWrittenSql)).rows
    do {
      const before = history.next
      const { pieceBytes } = history
      try {
        history.take((await client.query<Row>(sql, [before, pieceBytes, LEAST_ROWS])).rows)
      } catch (error) {
        // query_canceled: a smaller one may be in time at the next call
        if (sqlState(error) !== '57014' || pieceBytes <= PIECE_MIN_BYTES) throw error
        history.pieceBytes = pieceBytes / 2
        return
      }
      // what is written meanwhile is for the next call; one that comes no further waits for a transaction to end
      history.complete =
        history.next === null || history.next === before || compareLsn(history.next, end) >= 0
    } while (!history.complete && performance.now() < until)
  }
}
