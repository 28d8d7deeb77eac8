'use client'
import { type PinnedSessions, pinnedAdvice } from '@floe/domain'
import { Card, EmptyState, Table, TableBody, TableCell, TableHead, TableHeader, TableRow } from '@floe/ui'
import { StaleAge } from './stale-age'

/** Why sessions keep their workers, and what can be done about it. */
export function PinnedCard({
  pinned,
  staleAt,
}: {
  pinned: readonly PinnedSessions[]
  /** When this was read, where it may no longer hold. */
  staleAt: number | null
}) {
  return (
    <Card
      title="Why sessions are pinned"
      description={
        <>
          <StaleAge at={staleAt} />A dedicated session keeps its worker until the reason is gone. A session is
          asked only when others wait for a worker.
        </>
      }
      bodyClassName="p-0"
    >
      {pinned.length === 0 ? (
        <EmptyState title="No session is pinned">Every session can move between workers.</EmptyState>
      ) : (
        <Table label="Reasons why sessions are pinned">
          <TableHead>
            <tr>
              <TableHeader title="polar_stat_session.pinned_by">Reason</TableHeader>
              <TableHeader number>Sessions</TableHeader>
              <TableHeader>Advice</TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {pinned.map(({ reason, sessions }) => (
              <TableRow key={reason}>
                <TableCell className="font-medium">{reason}</TableCell>
                <TableCell number>{sessions.toLocaleString('en-US')}</TableCell>
                <TableCell className="min-w-64">{pinnedAdvice(reason)}</TableCell>
              </TableRow>
            ))}
          </TableBody>
        </Table>
      )}
    </Card>
  )
}
