'use client'
import { formatBytes, formatDuration, NO_PAGE_REPAIR } from '@floe/domain'
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

/** Each start after a crash: how long it took, what page repair checked, found torn and repaired, and from whom. */
export function RecoveryHistory() {
  const { instanceId, protection } = useInstance()
  const trpc = useTRPC()
  // queried again when the instance reports another recovery
  const query = useQuery(
    trpc.protection.history.queryOptions(
      { instanceId },
      {
        refetchInterval: ({ state: { data } }) =>
          isNewer(protection?.recovery, data?.recoveries[0]) ? 1_000 : false,
      },
    ),
  )
  const recoveries = query.data?.recoveries ?? []
  return (
    <Card
      title="Recoveries"
      description="Each start after a crash, and what page repair found in it, as the engine counted it. Pages of 8 kB."
      bodyClassName="p-0"
    >
      {query.error && !query.data ? (
        <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} className="m-3" />
      ) : query.isPending ? (
        <SkeletonRows label="Loading recoveries" />
      ) : recoveries.length === 0 ? (
        <EmptyState title="No recovery yet">
          A recovery appears here once the instance has started after a crash.
        </EmptyState>
      ) : (
        <Table label="Recoveries">
          <TableHead>
            <tr>
              <TableHeader>Began</TableHeader>
              <TableHeader
                number
                title="From the engine’s first read of its data until clients could connect"
              >
                Start
              </TableHeader>
              <TableHeader number title="The part of the start in which pages were checked and repaired">
                Page repair
              </TableHeader>
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
                  <Age at={r.start?.beganAt ?? r.startedAt} />
                </TableCell>
                <TableCell number>
                  {r.start ? formatDuration(r.start.readyAt - r.start.beganAt) : '–'}
                </TableCell>
                <TableCell number>
                  {r.endedAt === null ? '–' : formatDuration(Math.max(0, r.endedAt - r.startedAt))}
                </TableCell>
                <TableCell number>{counted(r, r.checked)}</TableCell>
                <TableCell number>{counted(r, r.torn)}</TableCell>
                <TableCell number>{counted(r, r.repaired)}</TableCell>
                <TableCell number>{counted(r, r.cleared ?? 0)}</TableCell>
                <TableCell number>{counted(r, r.bytes, formatBytes)}</TableCell>
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

/** What page repair counted; where it looked at nothing it counted nothing. */
const counted = (
  recovery: { policy: string },
  count: number,
  format: (n: number) => string = pages.format,
) => (recovery.policy === NO_PAGE_REPAIR ? '–' : format(count))

type Told = { startedAt: number; start?: { readyAt: number } | null | undefined }

/** Whether the instance reports another recovery than the newest stored one, or more of the same. */
const isNewer = (told: Told | null | undefined, stored: Told | undefined) =>
  Math.round(told?.startedAt ?? 0) > Math.round(stored?.startedAt ?? 0) ||
  Math.round(told?.start?.readyAt ?? 0) > Math.round(stored?.start?.readyAt ?? 0)
