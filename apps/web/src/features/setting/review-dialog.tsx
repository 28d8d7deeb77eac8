'use client'
import type { InstanceId, OperationId, SettingChange } from '@floe/domain'
import {
  Alert,
  Button,
  Dialog,
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
import Link from 'next/link'
import { useEffect, useEffectEvent, useRef, useState } from 'react'
import type { SettingView } from '@/server/api'
import { useTRPC, useTRPCClient } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from '../instance/instance-context'
import { OperationLink } from '../operation/operation-link'
import { Refusal } from '../operation/refusal'
import { useOperation } from '../operation/use-operation'
import { Confirmed, type ConfirmedChanges } from './confirmed-changes'
import { ImpactBadge } from './impact-badge'

type ReviewProps = {
  instanceId: InstanceId
  changes: readonly SettingChange[]
  settings: readonly SettingView[]
  /** The changes roll back to this revision. */
  revisionId?: string | undefined
  onClose: () => void
  /** The changes were confirmed by the instance; the dialog is done. */
  onApplied: (changes: ConfirmedChanges) => void
}

/**
 * Shows what changes would do (as the instance's own binary judges them), applies them, and follows the operation until
 * the instance has said the new values itself.
 */
export function ReviewDialog({
  changes,
  ...props
}: Omit<ReviewProps, 'changes'> & {
  /** Null keeps the dialog shut. */
  changes: readonly SettingChange[] | null
}) {
  return (
    <Dialog
      open={changes !== null}
      onOpenChange={(open) => {
        if (!open) props.onClose()
      }}
      title={props.revisionId === undefined ? 'Review changes' : 'Roll back'}
    >
      {changes ? <Review changes={changes} {...props} /> : null}
    </Dialog>
  )
}

export function Review({ instanceId, changes, settings, revisionId, onClose, onApplied }: ReviewProps) {
  const trpc = useTRPC()
  const { name } = useInstance()
  const [operationId, setOperationId] = useState<OperationId | null>(null)
  const key = useRef(newIdempotencyKey())
  const client = useTRPCClient()
  // a task of the instance's host: asked once for what is reviewed, and again only where a person says so
  const check = useQuery({
    queryKey: ['setting.check', instanceId, changes],
    queryFn: () => client.setting.check.mutate({ instanceId, changes: [...changes] }),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    enabled: operationId === null,
  })
  const set = useMutation(
    trpc.setting.set.mutationOptions({ onSuccess: (answer) => setOperationId(answer.operationId) }),
  )
  const rollBack = useMutation(
    trpc.setting.rollBack.mutationOptions({ onSuccess: (answer) => setOperationId(answer.operationId) }),
  )
  const [reason, setReason] = useState('')
  const watched = useOperation(operationId)
  const operation = watched?.operation ?? null
  const succeeded = operation?.state === 'succeeded'
  const applied = useEffectEvent(() => {
    if (operationId === null) return
    const result = Confirmed.safeParse(operation?.result)
    onApplied({ operationId, confirmed: result.success ? result.data.confirmed : [] })
    onClose()
  })
  useEffect(() => {
    if (succeeded) applied()
  }, [succeeded])

  if (operationId !== null) {
    const failed = operation?.state === 'failed' || operation?.state === 'cancelled'
    return (
      <div className="flex flex-col gap-3 pb-3">
        {failed ? (
          <FaultAlert
            fault={
              operation?.fault ?? { code: 'operation.cancelled', message: 'the operation was cancelled' }
            }
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

  const results = check.data?.results ?? []
  const refused = results.some((r) => r.fault !== null)
  const warnings = changes.flatMap((change) => {
    const setting = settings.find((s) => s.name === change.name)
    return setting?.warning && isOff(change.value) ? [{ name: change.name, text: setting.warning }] : []
  })
  const refusal = set.error ?? rollBack.error
  const apply = () => {
    const more = { instanceId, reason: reason.trim() || undefined, idempotencyKey: key.current }
    if (revisionId === undefined) set.mutate({ ...more, changes: [...changes] })
    else rollBack.mutate({ ...more, revisionId })
  }
  return (
    <div className="flex flex-col gap-3 pb-3">
      {check.isPending ? (
        <SkeletonRows rows={changes.length} label="Asking the instance what the changes would do" />
      ) : results.length > 0 ? (
        <div className="overflow-hidden rounded-md border border-line">
          <Table label="Changes">
            <TableHead>
              <tr>
                <TableHeader>Setting</TableHeader>
                <TableHeader>Old → new</TableHeader>
                <TableHeader>Needs</TableHeader>
              </tr>
            </TableHead>
            <TableBody>
              {results.map((result) => (
                <TableRow key={result.name}>
                  <TableCell className="font-mono">{result.name}</TableCell>
                  <TableCell>
                    <span className="inline-flex flex-wrap items-center gap-1.5 font-mono">
                      <span className="text-ink-muted">{result.oldValue ?? '–'}</span>
                      <ArrowRight aria-label="becomes" className="size-3.5 shrink-0 text-ink-faint" />
                      <span className="font-semibold">{result.newValue ?? 'default'}</span>
                    </span>
                  </TableCell>
                  <TableCell>
                    <ImpactBadge impact={result.impact} />
                  </TableCell>
                </TableRow>
              ))}
            </TableBody>
          </Table>
        </div>
      ) : null}
      {results.map((result) =>
        result.fault ? (
          <FaultAlert
            key={result.name}
            fault={result.fault}
            actions={
              result.fault.code === 'setting.of_cluster' ? (
                <ClusterLink />
              ) : result.fault.code === 'setting.unprotected' ? (
                <Button asChild size="small">
                  <Link href={`/instances/${name}/replication`}>Add a standby</Link>
                </Button>
              ) : undefined
            }
          />
        ) : null,
      )}
      {warnings.map((warning) => (
        <Alert key={warning.name} tone="warn" title={warning.name}>
          {warning.text}
        </Alert>
      ))}
      {results.some((r) => r.impact === 'restart' && !r.fault) ? (
        <p className="text-sm text-ink-muted">
          What needs a restart is written now and comes into force with the next one; nothing is restarted by
          this.
        </p>
      ) : null}
      <Field label="Why" hint="Kept in the history; may be left empty">
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
        <Button onClick={onClose}>Back</Button>
        <Button
          variant="primary"
          busy={set.isPending || rollBack.isPending}
          disabled={!check.data || refused}
          onClick={apply}
        >
          {revisionId === undefined ? 'Apply' : 'Roll back'}
        </Button>
      </div>
    </div>
  )
}

function ClusterLink() {
  const { name } = useInstance()
  return (
    <Link href={`/instances/${name}/settings/cluster`} className="font-medium text-accent hover:underline">
      Settings of the cluster
    </Link>
  )
}

function isOff(value: string | null): boolean {
  return value !== null && ['off', 'false', 'no', '0'].includes(value.trim().toLowerCase())
}
