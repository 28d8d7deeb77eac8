'use client'
import { formatWait, WORKER_POOLS_MAX, type WorkerPool } from '@floe/domain'
import {
  Card,
  EmptyState,
  ShowAll,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useState } from 'react'
import { StaleAge } from './stale-age'

const firstShown = 10
const n = (count: number) => count.toLocaleString('en-US')

/** Pools: sessions of the same database, role and login settings, and the workers that they share. */
export function PoolsCard({
  pools,
  staleAt,
}: {
  pools: readonly WorkerPool[]
  /** When this was read, where it may no longer hold. */
  staleAt: number | null
}) {
  const [all, setAll] = useState(false)
  // which of several dispatchers has it
  const several = pools.some((pool) => (pool.dispatcher ?? 1) > 1)
  return (
    <Card
      title="Pools"
      description={
        <>
          <StaleAge at={staleAt} />
          {`Sessions with the same database, role and login settings share workers.${pools.length >= WORKER_POOLS_MAX ? ` Those with the most sessions: ${WORKER_POOLS_MAX}.` : ''}`}
        </>
      }
      bodyClassName="p-0"
    >
      {pools.length === 0 ? (
        <EmptyState title="No pool yet">
          A pool begins when a session logs in through the shared port.
        </EmptyState>
      ) : (
        <>
          <Table label="Pools">
            <TableHead>
              <tr>
                <TableHeader>Database</TableHeader>
                <TableHeader>Role</TableHeader>
                {several ? <TableHeader number>Dispatcher</TableHeader> : null}
                <TableHeader number>Sessions</TableHeader>
                <TableHeader number>Workers</TableHeader>
                <TableHeader number>Free</TableHeader>
                <TableHeader number title="Sessions that wait for a worker">
                  Waiting
                </TableHeader>
                <TableHeader number title="Sessions that are pinned to their worker">
                  Dedicated
                </TableHeader>
                <TableHeader number title="Mean wait of all times that a session got a worker">
                  Mean wait
                </TableHeader>
                <TableHeader number>Transactions</TableHeader>
              </tr>
            </TableHead>
            <TableBody>
              {(all ? pools : pools.slice(0, firstShown)).map((pool, i) => (
                // a database and a role may have several pools
                // biome-ignore lint/suspicious/noArrayIndexKey: a pool has no name of its own
                <TableRow key={`${pool.database} ${pool.user} ${i}`}>
                  <TableCell className="font-medium">{pool.database}</TableCell>
                  <TableCell>{pool.user}</TableCell>
                  {several ? <TableCell number>{pool.dispatcher ?? '–'}</TableCell> : null}
                  <TableCell number>{n(pool.sessions)}</TableCell>
                  <TableCell number>{n(pool.workers)}</TableCell>
                  <TableCell number>{n(pool.freeWorkers)}</TableCell>
                  <TableCell number>{n(pool.waiting)}</TableCell>
                  <TableCell number>{n(pool.dedicated)}</TableCell>
                  <TableCell number>{pool.meanWaitMs === null ? '–' : formatWait(pool.meanWaitMs)}</TableCell>
                  <TableCell number>{n(pool.transactions)}</TableCell>
                </TableRow>
              ))}
            </TableBody>
          </Table>
          <ShowAll first={firstShown} count={pools.length} all={all} onChange={setAll} />
        </>
      )}
    </Card>
  )
}
