'use client'
import { formatBytes, formatDuration } from '@floe/domain'
import {
  Age,
  Card,
  EmptyState,
  FaultAlert,
  SkeletonRows,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useQuery } from '@tanstack/react-query'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useInstance } from '../instance/instance-context'
import { nameOf } from './protection-card'

const pages = new Intl.NumberFormat('en')

/** Each recovery after a crash: how long page repair took, what it checked, found torn and repaired, and from whom. */
export function RecoveryHistory() {
  const { instanceId, protection } = useInstance()
  const trpc = useTRPC()
  // asked anew when the instance tells of another recovery
  const query = useQuery(
    trpc.protection.history.queryOptions(
      { instanceId },
      {
        refetchInterval: ({ state: { data } }) =>
          isNewer(protection?.recovery?.startedAt, data) ? 1_000 : false,
      },
    ),
  )
  const recoveries = query.data?.recoveries ?? []
  return (
    <Card
      title="Recoveries"
      description="What page repair found after each crash, as the engine counted it. Pages of 8 kB."
      bodyClassName="p-0"
    >
      {query.error && !query.data ? (
        <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} className="m-3" />
      ) : query.isPending ? (
        <SkeletonRows label="Loading recoveries" />
      ) : recoveries.length === 0 ? (
        <EmptyState title="No recovery yet">
          A recovery shows here once the instance has started after a crash and page repair has looked at its
          pages.
        </EmptyState>
      ) : (
        <Table label="Recoveries">
          <TableHead>
            <tr>
              <TableHeader>Began</TableHeader>
              <TableHeader number>Took</TableHeader>
              <TableHeader number>Checked</TableHeader>
              <TableHeader number>Torn</TableHeader>
              <TableHeader number>Repaired</TableHeader>
              <TableHeader
                number
                title="Torn pages that need no source: visibility and free space maps, and what the source had dropped"
              >
                Cleared
              </TableHeader>
              <TableHeader number>Received</TableHeader>
              <TableHeader>From</TableHeader>
              <TableHeader>Policy</TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {recoveries.map((r) => (
              <TableRow key={r.startedAt}>
                <TableCell>
                  <Age at={r.startedAt} />
                </TableCell>
                <TableCell number>
                  {r.endedAt === null ? '–' : formatDuration(Math.max(0, r.endedAt - r.startedAt))}
                </TableCell>
                <TableCell number>{pages.format(r.checked)}</TableCell>
                <TableCell number>{pages.format(r.torn)}</TableCell>
                <TableCell number>{pages.format(r.repaired)}</TableCell>
                <TableCell number>{pages.format(r.cleared ?? 0)}</TableCell>
                <TableCell number>{formatBytes(r.bytes)}</TableCell>
                <TableCell>
                  {r.sources.length === 0
                    ? '–'
                    : r.sources.map((s) => `${nameOf(s)} (${pages.format(s.pages)})`).join(', ')}
                </TableCell>
                <TableCell className="font-mono">{r.policy}</TableCell>
              </TableRow>
            ))}
          </TableBody>
        </Table>
      )}
    </Card>
  )
}

const isNewer = (
  startedAt: number | undefined,
  data: { recoveries: readonly { startedAt: number }[] } | undefined,
) => startedAt !== undefined && Math.round(startedAt) > Math.round(data?.recoveries[0]?.startedAt ?? 0)
