import { FlashbackCounts, fault } from '@floe/domain'
import type pg from 'pg'
import type { FlashbackFunctions } from '../../engine/flashback/functions'
import { type KeptRows, type KeptSample, ONE_MAX_BYTES } from '../../engine/flashback/kept-rows'
import compareSql from '../../engine/sql/flashback-compare.sql'
import type { TaskContext } from '../runner/task'

/** Samples of each kind. */
const SAMPLES = 50
/** Rows of an answer: each may be some hundred kB. */
const AT_ONCE = 10

type Row = {
  kind: string
  rows: number | null
  key: string[] | null
  row_then: (string | null)[] | null
  row_now: (string | null)[] | null
}
const counted = ['then', 'now', 'same', 'added', 'removed', 'changed'] as const

export type Compared = {
  instanceId: string
  database: string
  /** The table as it is now. */
  relation: number
  /** Then: a moment, or a table with the rows of one. */
  at: string | null
  result: number | null
}

/** Compares the rows of then and now. Counts are answered; samples go to the agent's memory, as many as fit. */
export async function compareRows(
  client: pg.Client,
  functions: FlashbackFunctions,
  of: Compared,
  context: TaskContext,
): Promise<FlashbackCounts> {
  await client.query('begin read only')
  const { relation, at, result } = of
  // a cursor takes no parameters
  const values = [relation, at === null ? null : client.escapeLiteral(at), result, SAMPLES]
  const call = functions
    .within(compareSql)
    .replace(/\$(\d)/g, (_, n: string) => String(values[Number(n) - 1] ?? 'null'))
  await client.query(`declare compared no scroll cursor for ${call}`)
  const kept: KeptRows = {
    instanceId: of.instanceId,
    database: of.database,
    relation,
    columns: [],
    keyColumns: null,
    samples: [],
    conflictExample: null,
    bytes: 0,
  }
  const counts = new Map<string, number>()
  for (;;) {
    const { rows } = await client.query<Row>(`fetch ${AT_ONCE} from compared`)
    for (const row of rows) {
      if (row.kind === 'columns') {
        kept.columns = textsOf(row.row_now)
        kept.keyColumns = row.key
      } else if (row.rows !== null) counts.set(row.kind, row.rows)
      else keep(kept, row)
    }
    if (rows.length < AT_ONCE || kept.bytes > ONE_MAX_BYTES) break
  }
  await client.query('rollback')
  const [rowsThen, rowsNow, same, added, removed, changed] = counted.map((kind) => counts.get(kind))
  const parsed = FlashbackCounts.safeParse({
    rowsThen,
    rowsNow,
    same,
    added,
    removed,
    changed,
    keyColumns: kept.keyColumns,
  })
  if (!parsed.success) throw fault('flashback.bad_answer', 'the engine’s comparison is not complete')
  context.flashbacks.rows.put(context.operationId, kept)
  return parsed.data
}

const textsOf = (values: readonly (string | null)[] | null): string[] => (values ?? []).map((v) => v ?? '')

function keep(kept: KeptRows, { kind, key, row_then, row_now }: Row): void {
  const sample: KeptSample = { kind: kind as KeptSample['kind'], key, rowThen: row_then, rowNow: row_now }
  // two bytes a character, and what an array and a string take
  const values = [...(key ?? []), ...(row_then ?? []), ...(row_now ?? [])]
  kept.bytes += values.reduce((sum, v) => sum + 2 * (v?.length ?? 0) + 32, 0)
  if (kept.bytes <= ONE_MAX_BYTES) kept.samples.push(sample)
}
