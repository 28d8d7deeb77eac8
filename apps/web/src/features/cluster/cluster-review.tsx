'use client'
import type { OperationId, SettingChange } from '@floe/domain'
import {
  Alert,
  Button,
  FaultAlert,
  Field,
  Input,
  Progress,
  SkeletonRows,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useMutation, useQuery } from '@tanstack/react-query'
import { ArrowRight } from 'lucide-react'
import { useEffect, useEffectEvent, useRef, useState } from 'react'
import type { ClusterSettingCheck } from '@/server/api'
import { useTRPC, useTRPCClient } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from '../instance/instance-context'
import { OperationLink } from '../operation/operation-link'
import { Refusal } from '../operation/refusal'
import { useOperation } from '../operation/use-operation'
import { ImpactBadge } from '../setting/impact-badge'

const phaseWords: Record<ClusterSettingCheck['phases'][number]['phase'], string> = {
  standbys: 'Standbys, one after the other',
  primary: 'The primary',
  replayed: 'Each standby, once it has replayed what the primary wrote',
}

/** What is asked of all members: values, or a revision of the settings to roll back to. */
export type ClusterWanted = { changes: SettingChange[] } | { revisionId: string }

/** What a change would do on every member and in which order; applies it and follows it until all have confirmed. */
export function ClusterReview({
  wanted,
  onBack,
  onClose,
  onApplied,
}: {
  wanted: ClusterWanted
  onBack: () => void
  onClose: () => void
  onApplied: () => void
}) {
  const trpc = useTRPC()
  const { clusterId } = useInstance().cluster
  const [operationId, setOperationId] = useState<OperationId | null>(null)
  const [reason, setReason] = useState('')
  const key = useRef(newIdempotencyKey())
  const client = useTRPCClient()
  // tasks of the members' hosts: asked once for what is reviewed, and again only where a person says so
  const check = useQuery({
    queryKey: ['clusterSetting.check', clusterId, wanted],
    queryFn: () => client.clusterSetting.check.mutate({ clusterId, ...wanted }),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    enabled: operationId === null,
  })
  const asked = { onSuccess: (answer: { operationId: OperationId }) => setOperationId(answer.operationId) }
  const set = useMutation(trpc.clusterSetting.set.mutationOptions(asked))
  const rollBack = useMutation(trpc.clusterSetting.rollBack.mutationOptions(asked))
  if (operationId !== null)
    return <Applying operationId={operationId} onClose={onClose} onApplied={onApplied} />

  const apply = () => {
    const more = { clusterId, reason: reason.trim() || undefined, idempotencyKey: key.current }
    if ('changes' in wanted) set.mutate({ ...more, changes: wanted.changes })
    else rollBack.mutate({ ...more, revisionId: wanted.revisionId })
  }
  const refusal = set.error ?? rollBack.error
  return (
    <div className="flex flex-col gap-3 pb-3">
      {check.data ? (
        <Judged check={check.data} onRetry={() => void check.refetch()} />
      ) : check.isPending ? (
        <SkeletonRows rows={3} label="Asking every member what the changes would do" />
      ) : null}
      <Field label="Why" hint="Kept in the history of every member; may be left empty">
        {(control) => (
          <Input
            {...control}
            value={reason}
            maxLength={500}
            autoComplete="off"
            onChange={(event) => setReason(event.target.value)}
          />
        )}
      </Field>
      {refusal ? (
        <Refusal error={refusal} />
      ) : check.error ? (
        <FaultAlert fault={faultOf(check.error)} onRetry={() => void check.refetch()} />
      ) : null}
      <div className="flex flex-wrap justify-end gap-2">
        <Button onClick={onBack}>Back</Button>
        <Button
          variant="primary"
          busy={set.isPending || rollBack.isPending}
          disabled={!check.data || check.data.faults.length > 0}
          onClick={apply}
        >
          {'changes' in wanted ? 'Apply to all members' : 'Roll back all members'}
        </Button>
      </div>
    </div>
  )
}

function Judged({ check, onRetry }: { check: ClusterSettingCheck; onRetry: () => void }) {
  const rows = check.members.flatMap((m) =>
    m.results.filter((r) => r.oldValue !== r.newValue).map((r) => ({ member: m.name, ...r })),
  )
  return (
    <>
      {rows.length > 0 ? (
        <div className="overflow-x-auto rounded-md border border-line">
          <Table label="Changes by member">
            <TableHead>
              <tr>
                <TableHeader>Member</TableHeader>
                <TableHeader>Setting</TableHeader>
                <TableHeader>Old → new</TableHeader>
                <TableHeader>Needs</TableHeader>
              </tr>
            </TableHead>
            <TableBody>
              {rows.map((r) => (
                <TableRow key={`${r.member} ${r.name}`}>
                  <TableCell className="whitespace-nowrap">{r.member}</TableCell>
                  <TableCell className="font-mono">{r.name}</TableCell>
                  <TableCell>
                    <span className="inline-flex flex-wrap items-center gap-1.5 font-mono">
                      <span className="text-ink-muted">{r.oldValue ?? '–'}</span>
                      <ArrowRight aria-label="becomes" className="size-3.5 shrink-0 text-ink-faint" />
                      <span className="font-semibold">{r.newValue ?? 'default'}</span>
                    </span>
                  </TableCell>
                  <TableCell>
                    <ImpactBadge impact={r.impact} />
                  </TableCell>
                </TableRow>
              ))}
            </TableBody>
          </Table>
        </div>
      ) : null}
      {check.faults.map((fault) => (
        <FaultAlert key={`${fault.message} ${fault.detail}`} fault={fault} onRetry={onRetry} />
      ))}
      {check.faults.length === 0 ? (
        <div className="text-sm">
          <h3 className="mb-1 font-medium">Order</h3>
          <ol className="ml-5 list-decimal">
            {check.phases.map((p) => (
              <li key={p.phase}>
                {phaseWords[p.phase]}:{' '}
                {p.members.map((m) => `${m.name}${m.restart ? ' (restart)' : ''}`).join(', ')}
              </li>
            ))}
          </ol>
        </div>
      ) : null}
      {check.notes.length > 0 && check.faults.length === 0 ? (
        <Alert tone="warn" title="What it means for clients">
          {check.notes.map((note) => (
            <p key={note}>{note}</p>
          ))}
        </Alert>
      ) : null}
    </>
  )
}

function Applying({
  operationId,
  onClose,
  onApplied,
}: {
  operationId: OperationId
  onClose: () => void
  onApplied: () => void
}) {
  const watched = useOperation(operationId)
  const operation = watched?.operation ?? null
  const failed = operation?.state === 'failed' || operation?.state === 'cancelled'
  const succeeded = operation?.state === 'succeeded'
  const applied = useEffectEvent(() => {
    onApplied()
    onClose()
  })
  useEffect(() => {
    if (succeeded) applied()
  }, [succeeded])
  return (
    <div className="flex flex-col gap-3 pb-3">
      {failed ? (
        <FaultAlert
          fault={operation?.fault ?? { code: 'operation.cancelled', message: 'the operation was cancelled' }}
        />
      ) : (
        <>
          <p className="text-sm text-ink-muted">{operation?.message ?? 'Waiting for the controller'}</p>
          <Progress label="Applying, progress" value={operation?.progress ?? null} />
          {watched?.fault ? <FaultAlert fault={watched.fault} tone="warn" /> : null}
        </>
      )}
      <div className="flex flex-wrap items-center justify-between gap-2">
        <OperationLink operationId={operationId} />
        <Button variant="primary" onClick={onClose}>
          {failed ? 'Close' : 'Go on in the background'}
        </Button>
      </div>
    </div>
  )
}
