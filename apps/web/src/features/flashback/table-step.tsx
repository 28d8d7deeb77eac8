'use client'
import { formatBytes } from '@floe/domain'
import {
  Age,
  Alert,
  Button,
  EmptyState,
  FaultAlert,
  Field,
  SearchField,
  Select,
  SkeletonRows,
} from '@floe/ui'
import { Table2 } from 'lucide-react'
import { type ReactNode, useRef, useState } from 'react'
import type { Results } from './result-list'
import { rowsEstimateWords, TableList, tableNameOf } from './table-list'
import { type useTable, useTables } from './use-tables'
import type { Target } from './use-target'

type Chosen = ReturnType<typeof useTable>

/** The table: searched for in a database, or the one that was chosen, in a line. */
export function TableStep({
  target,
  chosen,
  results,
  onTarget,
  children,
}: {
  target: Target
  chosen: Chosen
  results: Results
  onTarget: (change: Partial<Target>) => void
  /** What stands above the list while no table is chosen. */
  children?: ReactNode
}) {
  const { table, fault, retry } = chosen
  if (target.table === null)
    return (
      <TableSearch target={target} results={results} onTarget={onTarget}>
        {children}
      </TableSearch>
    )
  const change = <Button onClick={() => onTarget({ table: null })}>Change table</Button>
  if (table === null)
    return (
      <Alert
        tone="warn"
        title={`There is no table ${target.table} in database ${target.database ?? ''}`}
        actions={change}
      >
        It may have been renamed or dropped. Dropped tables are listed below.
      </Alert>
    )
  if (table === undefined)
    return fault ? (
      <FaultAlert fault={fault} onRetry={retry} />
    ) : (
      <SkeletonRows rows={1} label="Reading the table" />
    )
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
      <div className="flex min-w-0 flex-1 basis-64 flex-wrap items-center gap-x-3 gap-y-1 text-sm">
        <span className="inline-flex min-w-0 items-center gap-1.5 text-base font-semibold [overflow-wrap:anywhere]">
          <Table2 aria-hidden className="size-4 shrink-0 text-ink-muted" />
          {tableNameOf(table)}
        </span>
        <span className="text-ink-muted">in database {target.database}</span>
        <span
          className="text-ink-muted tabular-nums"
          title="As of the last VACUUM or ANALYZE, with its TOAST table"
        >
          {formatBytes(table.sizeBytes)}
        </span>
        <span
          className="text-ink-muted tabular-nums"
          title="pg_class.reltuples, as of the last VACUUM or ANALYZE"
        >
          rows: {rowsEstimateWords(table.rowsEstimate)}
        </span>
        {table.lastChangedAt === null ? null : (
          <Age at={table.lastChangedAt} prefix="changed" className="text-ink-muted" />
        )}
      </div>
      {change}
      {table.whyNot ? (
        <Alert tone="warn" className="basis-full" title={`${tableNameOf(table)} cannot be flashed back`}>
          {table.whyNot}
        </Alert>
      ) : null}
    </div>
  )
}

function TableSearch({
  target,
  results,
  onTarget,
  children,
}: {
  target: Target
  results: Results
  onTarget: (change: Partial<Target>) => void
  children?: ReactNode
}) {
  const [search, setSearch] = useState('')
  const { data, searched, fault, retry } = useTables(target.database, search)
  const list = useRef<HTMLDivElement | null>(null)
  if (!data)
    return fault ? <FaultAlert fault={fault} onRetry={retry} /> : <SkeletonRows label="Reading the tables" />
  const { database, databases, tables, total } = data
  const made = new Set(results.results?.map((r) => r.result))
  return (
    <div className="flex flex-col gap-3">
      {fault ? <FaultAlert fault={fault} onRetry={retry} tone="warn" /> : null}
      {children}
      <div className="flex flex-wrap items-end gap-3">
        <Field label="Database" className="w-full sm:w-52">
          {(control) => (
            <Select
              {...control}
              value={database}
              onChange={(event) => onTarget({ database: event.target.value })}
            >
              {databases.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </Select>
          )}
        </Field>
        <SearchField
          label="Search tables"
          placeholder="schema.table"
          className="min-w-0 flex-1 basis-52"
          value={search}
          onChange={setSearch}
          onKeyDown={(event) => {
            const first = list.current?.querySelector<HTMLButtonElement>('button[data-choice]')
            if (event.key === 'ArrowDown' && first) {
              event.preventDefault()
              first.focus()
            }
            const only = tables.filter((t) => !t.whyNot)
            if (event.key === 'Enter' && only.length === 1 && only[0] && searched === search.trim())
              onTarget({ database, table: tableNameOf(only[0]) })
          }}
        />
      </div>
      {tables.length === 0 ? (
        <EmptyState icon={Table2} title={searched ? `No table matches “${searched}”` : 'No tables'}>
          {searched
            ? `Database ${database} has no table with that in its name. A dropped table is listed below.`
            : `Database ${database} has no tables of users. Choose another one.`}
        </EmptyState>
      ) : (
        <div ref={list}>
          <TableList
            tables={[...tables.filter((t) => !made.has(t.oid)), ...tables.filter((t) => made.has(t.oid))]}
            results={made}
            onChoose={(table) => onTarget({ database, table: tableNameOf(table) })}
          />
          {total > tables.length ? (
            <p className="mt-1.5 text-xs text-ink-muted">
              {tables.length} of {total} tables. Type a part of the name to find others.
            </p>
          ) : null}
        </div>
      )}
    </div>
  )
}
