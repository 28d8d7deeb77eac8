'use client'
import { type InstanceId, OperationState } from '@floe/domain'
import {
  Card,
  EmptyState,
  Moment,
  Progress,
  StateBadge,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useInfiniteQuery } from '@tanstack/react-query'
import { ListChecks } from 'lucide-react'
import Link from 'next/link'
import { useSearchParams } from 'next/navigation'
import { useTRPC } from '@/trpc/client'
import { AddressChoice } from '../console/address-choice'
import { PagedList } from '../console/paged-list'
import { OperationTime } from './operation-time'

/** All operations, newest first, or those of one instance; the chosen state is kept in the address. */
export function OperationList({ instanceId }: { instanceId?: InstanceId }) {
  const trpc = useTRPC()
  const params = useSearchParams()
  const wanted = OperationState.safeParse(params.get('state'))
  const state = wanted.success ? wanted.data : null
  const query = useInfiniteQuery(
    trpc.operation.list.infiniteQueryOptions(
      { instanceId, states: state ? [state] : undefined, limit: 50 },
      { getNextPageParam: (page) => page.nextCursor ?? undefined, refetchInterval: 3_000 },
    ),
  )
  const operations = query.data?.pages.flatMap((page) => page.operations) ?? []
  return (
    <Card
      title={instanceId ? 'Operations of this instance' : undefined}
      bodyClassName="p-0"
      actions={
        <AddressChoice
          label="State"
          name="state"
          value={state}
          options={OperationState.options}
          className="w-36"
        />
      }
    >
      <PagedList
        query={query}
        noun="operations"
        rows={operations.length}
        empty={
          <EmptyState icon={ListChecks} title={state ? `No operation is ${state}` : 'No operations yet'}>
            Every requested change is an operation: it has steps, a log and an address to share.
          </EmptyState>
        }
      >
        <Table label="Operations">
          <TableHead>
            <tr>
              <TableHeader>Operation</TableHeader>
              <TableHeader>State</TableHeader>
              {instanceId ? null : <TableHeader>Instance</TableHeader>}
              <TableHeader>Requested by</TableHeader>
              <TableHeader>Requested at</TableHeader>
              <TableHeader number>Duration</TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {operations.map((operation) => (
              <TableRow key={operation.operationId}>
                <TableCell className="min-w-40">
                  <Link
                    href={`/operations/${operation.operationId}`}
                    className="font-medium text-ink hover:text-accent hover:underline"
                  >
                    {operation.title}
                  </Link>
                  {operation.fault ? (
                    <p className="max-w-md truncate text-xs text-bad" title={operation.fault.message}>
                      {operation.fault.message}
                    </p>
                  ) : operation.state === 'running' ? (
                    <Progress
                      label={`${operation.title}, progress`}
                      value={operation.progress}
                      showPercent
                      className="mt-1 max-w-48"
                    />
                  ) : null}
                </TableCell>
                <TableCell>
                  <StateBadge state={operation.state} of="operation" />
                </TableCell>
                {instanceId ? null : (
                  <TableCell>
                    {operation.instanceName ? (
                      <Link
                        href={`/instances/${operation.instanceName}`}
                        className="hover:text-accent hover:underline"
                      >
                        {operation.instanceName}
                      </Link>
                    ) : (
                      '–'
                    )}
                  </TableCell>
                )}
                <TableCell>{operation.actorName}</TableCell>
                <TableCell>
                  <Moment at={operation.createdAt} />
                </TableCell>
                <TableCell number>
                  <OperationTime startedAt={operation.startedAt} endedAt={operation.endedAt} />
                </TableCell>
              </TableRow>
            ))}
          </TableBody>
        </Table>
      </PagedList>
    </Card>
  )
}
