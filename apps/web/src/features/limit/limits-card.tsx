'use client'
import {
  changedLimits,
  formatLimit,
  type InstanceId,
  type InstanceLimits,
  limitChangeWords,
  limitDriverTitles,
  limitNames,
  limitRecord,
  memoryKillWords,
  unlimitedWriteBackWords,
} from '@floe/domain'
import {
  Alert,
  Badge,
  Button,
  Card,
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
import { type ReactNode, useState } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { OperationLink } from '../operation/operation-link'
import { LimitDialog } from './limit-dialog'
import { LimitSums } from './limit-sums'

type Limits = RouterOutputs['instance']['limits']

/** How much of its host an instance may use: what is set, what the kernel has in force, what cannot be and why. */
export function LimitsCard({
  instanceId,
  name,
  busy,
}: {
  instanceId: InstanceId
  name: string
  /** Another operation has not ended. */
  busy: boolean
}) {
  const trpc = useTRPC()
  const mayChange = useMayChange()
  // what the dialog begins with
  const [proposed, setProposed] = useState<InstanceLimits | null>(null)
  const query = useQuery(trpc.instance.limits.queryOptions({ instanceId }, { refetchInterval: 2_000 }))
  const { data } = query
  const disabled = !mayChange || busy || !data
  const title = mayChange ? (busy ? 'Another operation has not ended yet.' : undefined) : viewerHint
  return (
    <Card
      title="Limits"
      description={
        data?.host
          ? `How much of host ${data.host.name} it may use. A change holds at once, without a restart.`
          : 'How much of its host it may use. A change holds at once, without a restart.'
      }
      actions={
        <Button
          size="small"
          disabled={disabled}
          title={title}
          onClick={() => setProposed(data?.limits ?? null)}
        >
          Change limits
        </Button>
      }
    >
      {data ? (
        <LimitsView
          limits={data}
          rollBack={(before) => (
            <Button size="small" disabled={disabled} title={title} onClick={() => setProposed(before)}>
              Roll back
            </Button>
          )}
        />
      ) : query.error ? (
        <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} />
      ) : (
        <SkeletonRows label="Loading the limits" />
      )}
      {data && proposed ? (
        <LimitDialog
          instanceId={instanceId}
          name={name}
          before={data.limits}
          proposed={proposed}
          onClose={() => setProposed(null)}
        />
      ) : null}
    </Card>
  )
}

function LimitsView({
  limits: { limits, observed, sums, history },
  rollBack,
}: {
  limits: Limits
  /** A button that proposes limits of earlier. */
  rollBack: (before: InstanceLimits) => ReactNode
}) {
  const set = limitNames.filter((name) => limits[name] !== null)
  const inForce = observed?.inForce ?? null
  const writeBack = observed && unlimitedWriteBackWords(observed)
  return (
    <div className="flex flex-col gap-3">
      {observed?.whyNot ? <FaultAlert fault={observed.whyNot} tone="warn" /> : null}
      {observed?.memoryNearLimit ? (
        <Alert tone="warn" title="Memory is near the limit">
          The kernel kills a process of the instance when it reaches the maximum.
        </Alert>
      ) : null}
      {set.length === 0 ? (
        <p className="text-sm text-ink-muted">No limits are set: it may use all of its host.</p>
      ) : (
        <Table label="Limits">
          <TableHead>
            <tr>
              <TableHeader>Limit</TableHeader>
              <TableHeader>Set</TableHeader>
              <TableHeader>In force</TableHeader>
              <TableHeader>Note</TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {set.map((name) => (
              <TableRow key={name}>
                <TableCell>{limitRecord(name).title}</TableCell>
                <TableCell className="font-mono">{formatLimit(name, limits[name])}</TableCell>
                <TableCell className="font-mono">
                  {inForce ? (
                    inForce[name] === limits[name] ? (
                      formatLimit(name, inForce[name])
                    ) : (
                      <Badge tone="warn">{formatLimit(name, inForce[name])}</Badge>
                    )
                  ) : (
                    <span className="text-ink-muted">{observed ? 'not running' : 'unknown'}</span>
                  )}
                </TableCell>
                <TableCell className="text-ink-muted">
                  {observed?.gaps
                    .filter((gap) => gap.limit === name)
                    .map((gap) => gap.why)
                    .join(' ') ?? ''}
                </TableCell>
              </TableRow>
            ))}
          </TableBody>
        </Table>
      )}
      <ul className="flex flex-col gap-1 text-sm text-ink-muted">
        {observed?.driver ? <li>Limited by {limitDriverTitles[observed.driver]}.</li> : null}
        {writeBack ? <li>{writeBack}</li> : null}
        {observed && observed.exempt.length > 0 ? (
          <li>
            Exempt from limits of I/O, so that WAL can always be recycled: {observed.exempt.join(', ')}.
          </li>
        ) : null}
        {observed?.outOfMemoryKills ? (
          <li>
            The kernel killed {observed.outOfMemoryKills} of its processes for want of memory since it was
            started.
          </li>
        ) : null}
        {observed?.lastMemoryKill ? (
          <li>
            Last killed <Moment at={observed.lastMemoryKill.at} />: {memoryKillWords(observed.lastMemoryKill)}
          </li>
        ) : null}
        <LimitSums sums={sums} />
      </ul>
      {history.length > 0 ? (
        <details>
          <summary className="text-sm font-medium">History</summary>
          <Table label="History of limits">
            <TableHead>
              <tr>
                <TableHeader>When</TableHeader>
                <TableHeader>Changed</TableHeader>
                <TableHeader>Who</TableHeader>
                <TableHeader>Why</TableHeader>
                <TableHeader>Operation</TableHeader>
                <TableHeader>
                  <span className="sr-only">Roll back</span>
                </TableHeader>
              </tr>
            </TableHead>
            <TableBody>
              {history.map((entry) => (
                <TableRow key={entry.operationId}>
                  <TableCell>
                    <Moment at={entry.at} />
                  </TableCell>
                  <TableCell className="font-mono whitespace-pre-line">
                    {changedLimits(entry.before, entry.after).map(limitChangeWords).join('\n')}
                  </TableCell>
                  <TableCell>{entry.actorName}</TableCell>
                  <TableCell>{entry.reason ?? ''}</TableCell>
                  <TableCell>
                    <OperationLink operationId={entry.operationId} />
                  </TableCell>
                  <TableCell>{rollBack(entry.before)}</TableCell>
                </TableRow>
              ))}
            </TableBody>
          </Table>
        </details>
      ) : null}
    </div>
  )
}
