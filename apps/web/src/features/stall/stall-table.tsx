'use client'
import { type Fault, formatDuration } from '@floe/domain'
import {
  Card,
  EmptyState,
  FaultAlert,
  Moment,
  ShowAll,
  SkeletonRows,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { type ReactNode, useState } from 'react'
import type { StallView } from './use-stalls'

const firstShown = 10

/** Stalls of the range: how long each was and what it waited for. */
export function StallTable({
  stalls,
  range,
  cut,
  loading,
  fault,
  onRetry,
  afterMs,
  actions,
}: {
  stalls: readonly StallView[]
  /** What is shown, e.g. `Last 5 minutes`. */
  range: string
  /** The range has more than these. */
  cut: boolean
  loading: boolean
  fault: Fault | null
  onRetry: () => void
  /** From when on work without a commit is a stall now; null: not known. */
  afterMs: number | null
  actions?: ReactNode
}) {
  const [all, setAll] = useState(false)
  const shown = all ? stalls : stalls.slice(0, firstShown)
  return (
    <Card
      title="Stalls"
      description={`${cut ? `The newest ${stalls.length} in: ` : 'In: '}${range}. A stall is work without a commit${afterMs === null ? '' : ` for ${formatDuration(afterMs)} or longer`}.`}
      actions={actions}
      bodyClassName="p-0"
    >
      {fault && stalls.length === 0 ? (
        <FaultAlert fault={fault} onRetry={onRetry} className="m-3" />
      ) : loading && stalls.length === 0 ? (
        <SkeletonRows label="Loading stalls" />
      ) : stalls.length === 0 ? (
        <EmptyState title="No stall in this range">
          Whenever sessions had work, some of it was committed.
        </EmptyState>
      ) : (
        <>
          <Table label="Stalls">
            <TableHead>
              <tr>
                <TableHeader title="When the last commit before it was seen, or its work began">
                  Start
                </TableHeader>
                <TableHeader number title="Until the first sample that showed a commit again, or no work">
                  Lasted
                </TableHeader>
                <TableHeader title="What most of it comes down to">Waited for</TableHeader>
                <TableHeader title="Wait events of sessions, by how often they were seen">
                  Wait events
                </TableHeader>
                <TableHeader number title="Most sessions that waited at once">
                  Sessions
                </TableHeader>
                <TableHeader title="The checkpoint that ran meanwhile, and how far it was">
                  Checkpoint
                </TableHeader>
              </tr>
            </TableHead>
            <TableBody>
              {shown.map((s) => (
                <TableRow key={s.seq}>
                  <TableCell className="whitespace-nowrap">
                    <Moment at={s.startedAt} />
                  </TableCell>
                  <TableCell number className="whitespace-nowrap">
                    {formatDuration(s.endedAt - s.startedAt)}
                  </TableCell>
                  <TableCell className="min-w-44">{s.reason}</TableCell>
                  <TableCell className="min-w-44">
                    <span title={s.waits.map((w) => `${w.type}:${w.event} ${w.count}`).join('\n')}>
                      {s.waited || '–'}
                    </span>
                  </TableCell>
                  <TableCell number>{s.sessions}</TableCell>
                  <TableCell className="whitespace-nowrap">
                    {s.checkpoint
                      ? `${s.checkpoint.kind}${s.checkpoint.phase ? `, ${s.checkpoint.phase}` : ''}`
                      : '–'}
                  </TableCell>
                </TableRow>
              ))}
            </TableBody>
          </Table>
          <ShowAll first={firstShown} count={stalls.length} all={all} onChange={setAll} />
        </>
      )}
    </Card>
  )
}
