'use client'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { useStandingFault } from '../console/use-standing-fault'
import { useInstance } from '../instance/instance-context'
import { type TableChoice, tableNameOf } from './table-list'

const READ_MS = 5_000
/** A word is searched for when nothing was typed for this long. */
const TYPED_MS = 200
const TABLES_SHOWN = 100
/** A whole name is found first, also among others that have it in theirs. */
const TABLES_NAMED = 10

/** The tables that were changed last first, the others in the order in which they came. */
export const changedFirst = (tables: readonly TableChoice[]): TableChoice[] =>
  [...tables].sort((a, b) => (b.lastChangedAt ?? 0) - (a.lastChangedAt ?? 0))

/** A text that is given on when it has not changed for a moment. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), TYPED_MS)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}

/** Tables of a database whose name has a text in it; without a database those of the first one. */
export function useTables(database: string | null, search: string) {
  const { instanceId, state } = useInstance()
  const trpc = useTRPC()
  const settled = useSettled(search.trim())
  const read = useQuery(
    trpc.flashback.tables.queryOptions(
      { instanceId, database, search: settled, limit: TABLES_SHOWN },
      {
        enabled: state === 'running',
        refetchInterval: READ_MS,
        placeholderData: keepPreviousData,
        retry: false,
      },
    ),
  )
  const fault = useStandingFault(read, `${instanceId} ${database}`)
  const tables = read.data?.tables
  const sorted = useMemo(() => changedFirst(tables ?? []), [tables])
  return {
    data: read.data ? { ...read.data, tables: sorted } : null,
    searched: settled,
    fault,
    retry: () => void read.refetch(),
  }
}

/** The table of that name as it is now; undefined while that is not known, null where there is none. */
export function useTable(database: string | null, name: string | null) {
  const { instanceId, state } = useInstance()
  const trpc = useTRPC()
  const read = useQuery(
    trpc.flashback.tables.queryOptions(
      { instanceId, database, search: name ?? '', limit: TABLES_NAMED },
      { enabled: state === 'running' && name !== null, refetchInterval: READ_MS, retry: false },
    ),
  )
  const table = name === null ? null : read.data?.tables.find((t) => tableNameOf(t) === name)
  return {
    table: table ?? (read.data ? null : undefined),
    fault: useStandingFault(read, `${instanceId} ${database} ${name}`),
    retry: () => void read.refetch(),
  }
}
