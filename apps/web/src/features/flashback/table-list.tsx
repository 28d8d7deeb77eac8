'use client'
import { type FlashbackTableInfo, formatBytes } from '@floe/domain'
import { Age, Table, TableBody, TableCell, TableHead, TableHeader, TableRow } from '@floe/ui'
import { Table2 } from 'lucide-react'
import type { KeyboardEvent } from 'react'

export type TableChoice = FlashbackTableInfo

export const tableNameOf = ({ schema, name }: { schema: string; name: string }) => `${schema}.${name}`

const about = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })
/** Rows by the planner's estimate; the engine has none before the first ANALYZE. */
export const rowsEstimateWords = (rows: number | null): string =>
  rows === null || rows < 0 ? 'unknown' : rows < 1_000 ? `about ${rows}` : `about ${about.format(rows)}`

const kindWords = { table: null, partitioned: 'partitioned', materialized: 'materialized view' } as const

/** Moves the focus between the rows of the list with the arrow keys. */
function moveFocus(event: KeyboardEvent<HTMLButtonElement>) {
  const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
  if (by === 0) return
  const list = event.currentTarget.closest('table')
  const buttons = [...(list?.querySelectorAll<HTMLButtonElement>('button[data-choice]') ?? [])]
  const at = buttons.indexOf(event.currentTarget)
  const next = buttons[at + by]
  if (at < 0 || !next) return
  event.preventDefault()
  next.focus()
}

/** Tables of a database, those that cannot be flashed back with the reason. */
export function TableList({
  tables,
  results,
  onChoose,
}: {
  tables: readonly TableChoice[]
  /** Those that flashbacks made. */
  results: ReadonlySet<number>
  onChoose: (table: TableChoice) => void
}) {
  return (
    <div className="overflow-hidden rounded-md border border-line">
      <Table label="Tables" boxClassName="max-h-88 overflow-y-auto">
        <TableHead className="sticky top-0 z-20">
          <tr>
            <TableHeader>Table</TableHeader>
            <TableHeader number title="As of the last VACUUM or ANALYZE, with its TOAST table">
              Size
            </TableHeader>
            <TableHeader number title="pg_class.reltuples, as of the last VACUUM or ANALYZE">
              Rows
            </TableHeader>
            <TableHeader title="The last commit that changed it, in the WAL of the window that was read so far">
              Changed
            </TableHeader>
          </tr>
        </TableHead>
        <TableBody>
          {tables.map((table) => (
            <TableRow key={table.oid} className={table.whyNot ? undefined : 'cursor-pointer'}>
              <TableCell className="min-w-48" onClick={() => (table.whyNot ? undefined : onChoose(table))}>
                {table.whyNot ? (
                  <span className="text-ink-muted">{tableNameOf(table)}</span>
                ) : (
                  <button
                    type="button"
                    data-choice
                    onKeyDown={moveFocus}
                    className="inline-flex items-center gap-1.5 text-left font-medium text-ink [overflow-wrap:anywhere] hover:text-accent"
                    onClick={(event) => {
                      event.stopPropagation()
                      onChoose(table)
                    }}
                  >
                    <Table2 aria-hidden className="size-3.5 shrink-0 text-ink-muted" />
                    {tableNameOf(table)}
                  </button>
                )}
                {kindWords[table.kind] ? (
                  <span className="ml-2 text-xs text-ink-muted">{kindWords[table.kind]}</span>
                ) : null}
                {results.has(table.oid) ? (
                  <span className="ml-2 text-xs text-ink-muted">result of a flashback</span>
                ) : null}
                {table.whyNot ? (
                  <p className="max-w-md text-xs text-ink-muted [overflow-wrap:anywhere]">{table.whyNot}</p>
                ) : null}
              </TableCell>
              <TableCell number>{formatBytes(table.sizeBytes)}</TableCell>
              <TableCell number>{rowsEstimateWords(table.rowsEstimate)}</TableCell>
              <TableCell className="whitespace-nowrap text-ink-muted">
                {table.lastChangedAt === null ? '–' : <Age at={table.lastChangedAt} />}
              </TableCell>
            </TableRow>
          ))}
        </TableBody>
      </Table>
    </div>
  )
}
