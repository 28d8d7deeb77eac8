import { compareLsn, type FlashbackEvent } from '@floe/domain'
import type pg from 'pg'
import { sqlState } from '../process/connection'
import activitySql from '../sql/flashback-activity.sql'
import tableNamesSql from '../sql/table-names.sql'
import walWrittenSql from '../sql/wal-written.sql'
import { requireFunctions } from './functions'
import { Partitions } from './partitions'

/**
 * WAL of one question to the engine, less where a host does not read that within its deadline; and how long a call goes on
 * asking: its answer has to come within 3 s.
 */
const PIECE_BYTES = 32 * 1024 * 1024
const PIECE_MIN_BYTES = 1024 * 1024
const CALL_MS = 1_500
/** Changes of fewer rows are no event. */
const LEAST_ROWS = 1_000
/**
 * The engine counts for each relation, and so for each partition: of fewer rows of one nothing is asked. It answers with no more
 * changes of a piece than so many, the first ones.
 */
const LEAST_PARTITION_ROWS = 50
const CHANGES_MAX = 20_000
/** Of relations, in memory; and of tables, in an answer. */
const KEPT_MAX = 10_000
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
/** Of one relation: a table, or a partition of one. */
type Event = Omit<FlashbackEvent, 'tableName' | 'partitions'> & { lsn: string }

const rowsOf = ({ inserted, updated, deleted }: Event) => inserted + updated + deleted

/** What was read of a database's WAL so far. */
export class History {
  /** The newest last. */
  events: Event[] = []
  readonly partitions = new Partitions()
  readonly #lastChange = new Map<number, number>()
  next: string | null = null
  /** Where the window began when this was begun to be read. */
  from: number | null = null
  to: number | null = null
  complete = false
  pieceBytes = PIECE_BYTES
  /** Of changes of fewer rows of a partition nothing is known; null where the database has none. */
  leastPartitionRows: number | null = null
  reading: Promise<void> | null = null

  /** Takes in what a piece has. */
  take(rows: readonly Row[]): void {
    const changes: Event[] = []
    for (const { kind, at, lsn, relation, inserted, updated, deleted } of rows) {
      if (kind === 'end') {
        if (lsn !== null) this.next = lsn
        if (at !== null) this.to = at
      } else if (kind === 'last') {
        if (relation && at !== null) this.#changed(relation, at)
      } else if (relation && at !== null) {
        const event = {
          kind,
          at,
          lsn: lsn ?? '',
          table: relation,
          inserted: inserted ?? 0,
          updated: updated ?? 0,
          deleted: deleted ?? 0,
        }
        if (kind === 'change') changes.push(event)
        else this.events.push(event)
      }
    }
    this.events.push(...this.#large(changes))
    this.events.sort((a, b) => a.at - b.at)
    if (this.events.length > KEPT_MAX) this.events = this.events.slice(-KEPT_MAX)
  }

  /** Those of many rows of one table: what a transaction did to partitions counts together. */
  #large(changes: readonly Event[]): Event[] {
    const keyOf = (e: Event) => `${e.lsn} ${this.partitions.above(e.table, e.at).at(-1) ?? e.table}`
    const rows = new Map<string, number>()
    for (const e of changes) rows.set(keyOf(e), (rows.get(keyOf(e)) ?? 0) + rowsOf(e))
    return changes.filter((e) => (rows.get(keyOf(e)) ?? 0) >= LEAST_ROWS)
  }

  /**
   * What happened to a table, or to all of them: then to a partition is to the outermost table. What one transaction did to
   * several partitions is one event; nothing but a change of many rows of them all is one of the table.
   */
  eventsOf(table: number | null, since: number): Omit<FlashbackEvent, 'tableName'>[] {
    type Sum = { event: Omit<FlashbackEvent, 'tableName'>; parts: Set<number>; own: boolean }
    const sums = new Map<string, Sum>()
    for (const event of this.events) {
      if (event.at < since) continue
      const above = this.partitions.above(event.table, event.at)
      const of = table === null ? (above.at(-1) ?? event.table) : table
      if (of !== event.table && !above.includes(of)) continue
      const key = `${event.lsn} ${event.kind} ${of}`
      const { lsn: _, ...first } = event
      const sum = sums.get(key)
      if (sum) {
        sum.event.inserted += event.inserted
        sum.event.updated += event.updated
        sum.event.deleted += event.deleted
      }
      const { parts, own } = sum ?? { parts: new Set<number>(), own: false }
      if (of !== event.table) parts.add(event.table)
      sums.set(key, { event: sum?.event ?? { ...first, table: of }, parts, own: own || of === event.table })
    }
    return [...sums.values()]
      .map(({ event, parts, own }) => (own ? event : { ...event, partitions: parts.size }))
      .filter((e) => e.kind !== 'change' || e.inserted + e.updated + e.deleted >= LEAST_ROWS)
      .slice(-EVENTS_MAX)
  }

  #changed(relation: number, at: number): void {
    this.#lastChange.delete(relation)
    this.#lastChange.set(relation, Math.max(at, this.#lastChange.get(relation) ?? 0))
    if (this.#lastChange.size > TABLES_MAX)
      this.#lastChange.delete(this.#lastChange.keys().next().value as number)
  }

  /** When each table was changed last; one with partitions, when any of them was. */
  lastChanges(): Map<number, number> {
    const found = new Map<number, number>()
    for (const [relation, at] of this.#lastChange)
      for (const of of [relation, ...this.partitions.above(relation, at)])
        found.set(of, Math.max(at, found.get(of) ?? 0))
    return found
  }
}

export type ActivityRead = {
  events: FlashbackEvent[]
  coveredFrom: number | null
  coveredTo: number | null
  complete: boolean
  leastPartitionRows: number | null
}

/**
 * What happened to the tables of databases, by their WAL. Each call reads on for a moment from where the last one ended, and at
 * most one at a time reads a database; a restart of the agent begins again.
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
    const changes = this.#histories.get(`${instanceId} ${database}`)?.lastChanges()
    return (table) => changes?.get(table) ?? null
  }

  async read(
    client: pg.Client,
    asked: { instanceId: string; database: string; table: number | null; windowFrom: number | null },
  ): Promise<ActivityRead> {
    const history = this.#historyOf(asked.instanceId, asked.database)
    history.reading ??= this.#readOn(client, asked.database, history)
      .catch((error: unknown) => {
        // where it was to go on may be gone, e.g. with the timeline: the next call begins again
        this.#histories.delete(`${asked.instanceId} ${asked.database}`)
        throw error
      })
      .finally(() => {
        history.reading = null
      })
    await history.reading
    if (history.next !== null) history.from ??= asked.windowFrom
    const since = asked.windowFrom ?? 0
    const events = history.eventsOf(asked.table, since)
    const numbers = [...new Set(events.map((e) => e.table))]
    const { rows } = await client.query<{ oid: number; name: string }>(tableNamesSql, [numbers])
    const names = new Map(rows.map((r) => [r.oid, r.name]))
    return {
      events: events.map((e) => ({ ...e, tableName: names.get(e.table) ?? null })).reverse(),
      coveredFrom: history.from === null ? null : Math.max(history.from, since),
      coveredTo: history.to,
      complete: history.complete,
      leastPartitionRows: history.leastPartitionRows,
    }
  }

  async #readOn(client: pg.Client, database: string, history: History): Promise<void> {
    const sql = (await requireFunctions(client, database)).within(activitySql)
    const until = performance.now() + CALL_MS
    const [{ lsn: end } = { lsn: '0/0' }] = (await client.query<{ lsn: string }>(walWrittenSql)).rows
    await history.partitions.look(client)
    do {
      const before = history.next
      const { pieceBytes } = history
      const ask = async (least: number) => (await client.query<Row>(sql, [before, pieceBytes, least])).rows
      try {
        let least = history.partitions.any ? LEAST_PARTITION_ROWS : LEAST_ROWS
        let rows = await ask(least)
        if (least < LEAST_ROWS && rows.filter((r) => r.kind === 'change').length >= CHANGES_MAX) {
          least = LEAST_ROWS
          rows = await ask(least)
        }
        if (history.partitions.any)
          history.leastPartitionRows = Math.max(history.leastPartitionRows ?? 0, least)
        history.take(rows)
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
