import { Button, FaultAlert, SkeletonRows } from '@floe/ui'
import type { ReactNode } from 'react'
import { faultOf } from '@/trpc/fault'

/** As much of an infinite query as a list shows. */
type Paged = {
  data: unknown
  error: unknown
  isPending: boolean
  hasNextPage: boolean
  isFetchingNextPage: boolean
  refetch: () => Promise<unknown>
  fetchNextPage: () => Promise<unknown>
}

/**
 * The frame of a list that comes page by page, newest first: loading, the fault above what was loaded before it, `empty`
 * in place of no rows, and a button for older ones.
 */
export function PagedList({
  query,
  noun,
  rows,
  empty,
  children,
}: {
  query: Paged
  /** Of what the list is of, in the plural. */
  noun: string
  /** How many there are so far. */
  rows: number
  empty: ReactNode
  children: ReactNode
}) {
  return (
    <>
      {query.error ? (
        <FaultAlert
          fault={faultOf(query.error)}
          tone={query.data ? 'warn' : 'bad'}
          onRetry={() => void query.refetch()}
          className="m-3"
        />
      ) : null}
      {query.isPending ? (
        <SkeletonRows label={`Loading ${noun}`} />
      ) : rows > 0 ? (
        children
      ) : query.error ? null : (
        empty
      )}
      {query.hasNextPage && rows > 0 ? (
        <div className="border-t border-line px-4 py-2">
          <Button size="small" busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show older
          </Button>
        </div>
      ) : null}
    </>
  )
}
