'use client'
import { Checkbox, Segmented, Table, TableBody, TableCell, TableHead, TableHeader, TableRow } from '@floe/ui'
import { useState } from 'react'
import { columnOrder, isChanged, keyInWords, rowOrder, type SampleRow } from './row-difference'

type Kind = SampleRow['kind']
const kinds: readonly Kind[] = ['removed', 'changed', 'added']
const titles: Record<Kind, string> = { removed: 'Removed', changed: 'Changed', added: 'Added' }
const number = new Intl.NumberFormat('en')

/**
 * Rows of a comparison, as they were and as they are, by what became of them. With `onSelect` each has a box to tick: the
 * selection holds places in `rows`.
 */
export function SampleRows({
  columns,
  keyColumns,
  rows,
  counts,
  selected,
  onSelect,
}: {
  columns: readonly string[]
  keyColumns: readonly string[] | null
  rows: readonly SampleRow[]
  counts: Record<Kind, number>
  selected?: ReadonlySet<number>
  onSelect?: (selected: ReadonlySet<number>) => void
}) {
  const there = kinds.filter((kind) => rows.some((row) => row.kind === kind))
  const [wanted, setWanted] = useState<Kind | null>(null)
  const kind = wanted && there.includes(wanted) ? wanted : there[0]
  if (!kind) return <p className="text-sm text-ink-muted">No row differs.</p>
  const shown = rowOrder(rows, columns, keyColumns).flatMap((index) => {
    const row = rows[index]
    return row?.kind === kind ? [{ row, index }] : []
  })
  const order = columnOrder(
    columns,
    keyColumns,
    shown.map(({ row }) => row),
  )
  const chosen = selected ?? new Set<number>()
  const toggle = (indexes: readonly number[], on: boolean) => {
    const next = new Set(chosen)
    for (const index of indexes) on ? next.add(index) : next.delete(index)
    onSelect?.(next)
  }
  return (
    <div className="overflow-hidden rounded-md border border-line">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5 border-b border-line px-3 py-2">
        <Segmented
          label="Rows"
          value={kind}
          onChange={setWanted}
          choices={there.map((k) => ({ value: k, label: `${titles[k]} ${number.format(counts[k])}` }))}
        />
        <span className="text-xs text-ink-muted">
          {shown.length < counts[kind]
            ? `the first ${number.format(shown.length)} of ${number.format(counts[kind])} rows`
            : 'all of them'}
          {kind === 'changed' ? '; above as it was, below as it is' : ''}
        </span>
      </div>
      <Table
        label={`${titles[kind]} rows`}
        className="font-mono text-xs"
        boxClassName="max-h-96 overflow-y-auto"
      >
        <Head
          columns={columns}
          order={order}
          keyColumns={keyColumns}
          {...(onSelect
            ? {
                allChosen: shown.every(({ index }) => chosen.has(index)),
                onAll: (on: boolean) =>
                  toggle(
                    shown.map(({ index }) => index),
                    on,
                  ),
              }
            : {})}
        />
        <TableBody>
          {shown.map(({ row, index }) => (
            <TableRow key={index}>
              {onSelect ? (
                <TableCell className="w-0 min-w-0!">
                  <Checkbox
                    aria-label={`Select ${keyInWords(row, columns, keyColumns) ?? `row ${index + 1}`}`}
                    checked={chosen.has(index)}
                    onCheckedChange={(on) => toggle([index], on === true)}
                  />
                </TableCell>
              ) : null}
              {order.map((column) => (
                <TableCell key={column} className="align-top">
                  <ValueOf row={row} column={column} />
                </TableCell>
              ))}
            </TableRow>
          ))}
        </TableBody>
      </Table>
    </div>
  )
}

function Head({
  columns,
  order,
  keyColumns,
  allChosen = false,
  onAll,
}: {
  columns: readonly string[]
  order: readonly number[]
  keyColumns: readonly string[] | null
  allChosen?: boolean
  onAll?: (on: boolean) => void
}) {
  return (
    <TableHead className="sticky top-0 z-20">
      <tr>
        {onAll ? (
          <TableHeader className="w-0 min-w-0!">
            <Checkbox
              aria-label="Select all rows shown"
              checked={allChosen}
              onCheckedChange={(on) => onAll(on === true)}
            />
          </TableHeader>
        ) : null}
        {order.map((column) => (
          <TableHeader key={column}>
            {columns[column]}
            {keyColumns?.includes(columns[column] as string) ? (
              <span className="ml-1 font-sans text-[10px] text-ink-faint">key</span>
            ) : null}
          </TableHeader>
        ))}
      </tr>
    </TableHead>
  )
}

function ValueOf({ row, column }: { row: SampleRow; column: number }) {
  const [then, now] = [row.rowThen?.[column] ?? null, row.rowNow?.[column] ?? null]
  if (!isChanged(row, column)) return <Value text={row.rowThen ? then : now} />
  return (
    <span className="flex flex-col gap-0.5">
      <del className="rounded-xs bg-bad-soft px-1 no-underline">
        <span className="sr-only">then </span>
        <Value text={then} />
      </del>
      <ins className="rounded-xs bg-good-soft px-1 no-underline">
        <span className="sr-only">now </span>
        <Value text={now} />
      </ins>
    </span>
  )
}

/** A value in one line, cut where it is long; NULL looks unlike the text NULL. */
function Value({ text }: { text: string | null }) {
  if (text === null) return <span className="text-ink-faint italic">NULL</span>
  if (text === '') return <span className="text-ink-faint">(empty)</span>
  return (
    <span className="block max-w-64 truncate whitespace-pre" title={text.length > 24 ? text : undefined}>
      {text}
    </span>
  )
}
