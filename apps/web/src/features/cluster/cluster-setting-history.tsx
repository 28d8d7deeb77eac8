'use client'
import {
  Badge,
  Card,
  EmptyState,
  FaultAlert,
  Moment,
  SkeletonRows,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useQuery } from '@tanstack/react-query'
import { ArrowRight, History } from 'lucide-react'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useInstance } from '../instance/instance-context'
import { OperationLink } from '../operation/operation-link'

/** Who changed which setting on which member when and why. */
export function ClusterSettingHistory() {
  const { clusterId } = useInstance().cluster
  const trpc = useTRPC()
  const query = useQuery(
    trpc.clusterSetting.history.queryOptions({ clusterId, limit: 200 }, { refetchInterval: 10_000 }),
  )
  const changes = query.data?.changes
  return (
    <Card
      title="History"
      description="Changes on any member, as that member confirmed them."
      bodyClassName="max-h-96 overflow-y-auto p-0"
    >
      {query.error && !changes ? (
        <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} className="m-3" />
      ) : changes === undefined ? (
        <SkeletonRows label="Loading the history" />
      ) : changes.length === 0 ? (
        <EmptyState icon={History} title="No setting has been changed yet">
          Every change is kept with who made it, when, and both values.
        </EmptyState>
      ) : (
        <Table label="History of the cluster’s settings">
          <TableHead>
            <tr>
              <TableHeader>When</TableHeader>
              <TableHeader>Member</TableHeader>
              <TableHeader>Setting</TableHeader>
              <TableHeader>Old → new</TableHeader>
              <TableHeader>Who</TableHeader>
              <TableHeader>Why</TableHeader>
              <TableHeader>Operation</TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {changes.map((entry) => (
              <TableRow key={`${entry.operationId} ${entry.instanceId} ${entry.name}`}>
                <TableCell>
                  <Moment at={entry.at} />
                </TableCell>
                <TableCell className="whitespace-nowrap">{entry.instanceName}</TableCell>
                <TableCell className="font-mono">{entry.name}</TableCell>
                <TableCell>
                  <span className="inline-flex flex-wrap items-center gap-1.5 font-mono">
                    <span className="text-ink-muted">{entry.oldValue ?? 'default'}</span>
                    <ArrowRight aria-label="became" className="size-3.5 shrink-0 text-ink-faint" />
                    <span>{entry.newValue ?? 'default'}</span>
                    {entry.pendingRestart ? <Badge tone="warn">after a restart</Badge> : null}
                  </span>
                </TableCell>
                <TableCell>{entry.actorName}</TableCell>
                <TableCell className="max-w-64 break-words text-ink-muted">{entry.reason ?? '–'}</TableCell>
                <TableCell>
                  <OperationLink operationId={entry.operationId}>Open</OperationLink>
                </TableCell>
              </TableRow>
            ))}
          </TableBody>
        </Table>
      )}
    </Card>
  )
}
