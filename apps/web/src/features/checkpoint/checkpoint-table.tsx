'use client'
import type { Fault } from '@floe/domain'
import {
  Card,
  EmptyState,
  FaultAlert,
  ShowAll,
  SkeletonRows,
  type SortDirection,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useMemo, useState } from 'react'
import { checkpointColumns, sortCheckpoints } from './checkpoint-columns'
import type { CheckpointView } from './use-checkpoints'

const firstShown = 20

/** Every checkpoint of the range with all that the server says about it. */
export function CheckpointTable({
  checkpoints,
  range,
  cut,
  loading,
  fault,
  onRetry,
}: {
  checkpoints: readonly CheckpointView[]
  /** What is shown, e.g. `Last 5 minutes`. */
  range: string
  /** The range has more than these. */
  cut: boolean
  loading: boolean
  fault: Fault | null
  onRetry: () => void
}) {
  const [sort, setSort] = useState<{ key: string; direction: SortDirection }>({
    key: 'completedAt',
    direction: 'descending',
  })
  const [all, setAll] = useState(false)
  const sorted = useMemo(() => sortCheckpoints(checkpoints, sort.key, sort.direction), [checkpoints, sort])
  const shown = all ? sorted : sorted.slice(0, firstShown)
  return (
    <Card
      title="Checkpoints"
      description={`${cut ? `The newest ${checkpoints.length} completed in: ` : 'Completed in: '}${range}. From the server log; times are measured by the server.`}
      bodyClassName="p-0"
    >
      {fault && checkpoints.length === 0 ? (
        <FaultAlert fault={fault} onRetry={onRetry} className="m-3" />
      ) : loading && checkpoints.length === 0 ? (
        <SkeletonRows label="Loading checkpoints" />
      ) : checkpoints.length === 0 ? (
        <EmptyState title="No checkpoint in this range">
          PostgreSQL starts one every checkpoint_timeout, or when max_wal_size is reached, if something was
          written.
        </EmptyState>
      ) : (
        <>
          <Table label="Checkpoints">
            <TableHead>
              <tr>
                {checkpointColumns.map((column) => (
                  <TableHeader
                    key={column.key}
                    number={column.number}
                    title={column.title}
                    sort={sort.key === column.key ? sort.direction : null}
                    onSort={() =>
                      setSort((before) => ({
                        key: column.key,
                        direction:
                          before.key === column.key && before.direction === 'descending'
                            ? 'ascending'
                            : 'descending',
                      }))
                    }
                  >
                    {column.label}
                  </TableHeader>
                ))}
              </tr>
            </TableHead>
            <TableBody>
              {shown.map((c) => (
                <TableRow key={c.seq}>
                  {checkpointColumns.map((column) => (
                    <TableCell
                      key={column.key}
                      number={column.number}
                      className={column.key === 'reason' ? 'min-w-44' : 'whitespace-nowrap'}
                    >
                      {column.show(c)}
                    </TableCell>
                  ))}
                </TableRow>
              ))}
            </TableBody>
          </Table>
          <ShowAll first={firstShown} count={sorted.length} all={all} onChange={setAll} />
        </>
      )}
    </Card>
  )
}
