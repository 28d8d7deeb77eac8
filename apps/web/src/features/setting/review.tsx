'use client'
import type { Fault, OperationId, SettingChange, SettingScope } from '@floe/domain'
import {
  Alert,
  Button,
  Checkbox,
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
import Link from 'next/link'
import { useEffect, useEffectEvent, useId, useRef, useState } from 'react'
import type { SettingCheck, SettingView } from '@/server/api'
import { useTRPC, useTRPCClient } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from '../instance/instance-context'
import { OperationLink } from '../operation/operation-link'
import { Refusal } from '../operation/refusal'
import { useOperation } from '../operation/use-operation'
import { type ConfirmedChanges, confirmedIn } from './confirmed-changes'
import { ImpactBadge } from './impact-badge'
import { OldToNew } from './old-to-new'
import { isOff } from './setting-diff'

/** What is asked for: values, or a revision of the settings to roll back to. */
export type Wanted = { changes: SettingChange[] } | { revisionId: string }

type ReviewProps = {
  scope: SettingScope
  wanted: Wanted
  /** Their warnings are shown where a change turns one off. */
  settings: readonly SettingView[]
  onBack: () => void
  onClose: () => void
  /** The changes were confirmed by every member; the dialog is done. */
  onApplied: (changes: ConfirmedChanges) => void
}

/** The review in a dialog of its own; null keeps it shut. */
export function ReviewDialog({
  wanted,
  ...props
}: Omit<ReviewProps, 'wanted' | 'onBack'> & { wanted: Wanted | null }) {
  const onMembers = 'clusterId' in props.scope
  const rollsBack = wanted !== null && 'revisionId' in wanted
  return (
    <Dialog
      open={wanted !== null}
      onOpenChange={(open) => {
        if (!open) props.onClose()
      }}
      title={
        rollsBack
          ? onMembers
            ? 'Roll back all members'
            : 'Roll back'
          : onMembers
            ? 'Review changes on all members'
            : 'Review changes'
      }
    >
      {wanted ? <Review wanted={wanted} onBack={props.onClose} {...props} /> : null}
    </Dialog>
  )
}

/**
 * Shows what changes would do on every member, as its own binary judges them, and in which order; applies them, and follows
 * the operation until all have said the new values themselves.
 */
export function Review({ scope, wanted, settings, onBack, onClose, onApplied }: ReviewProps) {
  const trpc = useTRPC()
  const client = useTRPCClient()
  const { cluster } = useInstance()
  const [operationId, setOperationId] = useState<OperationId | null>(null)
  const [reason, setReason] = useState('')
  const acrossCluster = 'clusterId' in scope
  const [restart, setRestart] = useState(acrossCluster)
  const key = useRef(newIdempotencyKey())
  // an instance alone is restarted as the cluster of one that it is
  const asked = restart && !acrossCluster ? { clusterId: cluster.clusterId } : scope
  // a task of the members' hosts: asked once for what is reviewed, and again only where a person says so
  const check = useQuery({
    queryKey: ['setting.check', asked, wanted, restart],
    queryFn: () => client.setting.check.mutate({ scope: asked, restart, ...wanted }),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    enabled: operationId === null,
  })
  const begun = { onSuccess: (answer: { operationId: OperationId }) => setOperationId(answer.operationId) }
  const set = useMutation(trpc.setting.set.mutationOptions(begun))
  const rollBack = useMutation(trpc.setting.rollBack.mutationOptions(begun))
  if (operationId !== null)
    return <Applying operationId={operationId} onClose={onClose} onApplied={onApplied} />

  const apply = () => {
    const more = { scope: asked, reason: reason.trim() || undefined, idempotencyKey: key.current }
    if ('changes' in wanted) set.mutate({ ...more, restart, changes: wanted.changes })
    else rollBack.mutate({ ...more, revisionId: wanted.revisionId })
  }
  const refusal = set.error ?? rollBack.error
  const needsRestart = check.data?.members.some((m) =>
    m.results.some((r) => r.impact === 'restart' && !r.fault),
  )
  const mayChoose = 'changes' in wanted && (acrossCluster || cluster.members === 1)
  return (
    <div className="flex flex-col gap-3 pb-3">
      {check.data ? (
        <Judged check={check.data} settings={settings} onRetry={() => void check.refetch()} />
      ) : check.isPending ? (
        <SkeletonRows
          rows={'changes' in wanted ? wanted.changes.length : 3}
          label={acrossCluster ? 'Checking the changes on every member' : 'Checking the changes'}
        />
      ) : null}
      {mayChoose && (needsRestart || restart !== acrossCluster) ? (
        <RestartChoice acrossCluster={acrossCluster} restart={restart} onChange={setRestart} />
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
        <Button onClick={onBack}>Back</Button>
        <Button
          variant="primary"
          busy={set.isPending || rollBack.isPending}
          disabled={!check.data || check.data.faults.length > 0}
          onClick={apply}
        >
          {'changes' in wanted
            ? acrossCluster
              ? 'Apply to all members'
              : 'Apply'
            : acrossCluster
              ? 'Roll back all members'
              : 'Roll back'}
        </Button>
      </div>
    </div>
  )
}

function RestartChoice({
  acrossCluster,
  restart,
  onChange,
}: {
  acrossCluster: boolean
  restart: boolean
  onChange: (restart: boolean) => void
}) {
  const id = useId()
  return (
    <span className="flex items-center gap-2">
      <Checkbox id={id} checked={restart} onCheckedChange={(checked) => onChange(checked === true)} />
      <label htmlFor={id}>
        {acrossCluster ? 'Restart the members that need it, one after the other' : 'Restart the instance now'}
      </label>
    </span>
  )
}

const phaseWords: Record<SettingCheck['phases'][number]['phase'], string> = {
  standbys: 'Standbys, one after the other',
  primary: 'The primary',
  replayed: 'Each standby, once it has replayed what the primary wrote',
}

function Judged({
  check,
  settings,
  onRetry,
}: {
  check: SettingCheck
  settings: readonly SettingView[]
  onRetry: () => void
}) {
  const { name } = useInstance()
  const several = check.members.length > 1
  const all = check.members.flatMap((m) => m.results.map((r) => ({ member: m.name, ...r })))
  const moves = all.filter((r) => r.oldValue !== r.newValue || r.fault)
  const rows = moves.length > 0 ? moves : all
  // a member may answer the next time; what is wrong with a value stays wrong
  const mayPass = (fault: Fault) =>
    /^(member|cluster)\./.test(fault.code) || check.members.some((m) => m.fault?.message === fault.message)
  const off = new Set(all.filter((r) => isOff(r.newValue)).map((r) => r.name))
  return (
    <>
      {rows.length > 0 ? (
        <div className="overflow-x-auto rounded-md border border-line">
          <Table label={several ? 'Changes by member' : 'Changes'}>
            <TableHead>
              <tr>
                {several ? <TableHeader>Member</TableHeader> : null}
                <TableHeader>Setting</TableHeader>
                <TableHeader>Old → new</TableHeader>
                <TableHeader>Needs</TableHeader>
              </tr>
            </TableHead>
            <TableBody>
              {rows.map((r) => (
                <TableRow key={`${r.member} ${r.name}`}>
                  {several ? <TableCell className="whitespace-nowrap">{r.member}</TableCell> : null}
                  <TableCell className="font-mono">{r.name}</TableCell>
                  <TableCell>
                    <OldToNew from={r.oldValue ?? '–'} to={r.newValue ?? 'default'} arrow="becomes" />
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
        <FaultAlert
          key={`${fault.message} ${fault.detail}`}
          fault={fault}
          onRetry={mayPass(fault) ? onRetry : undefined}
          actions={wayOut(fault, name)}
        />
      ))}
      {check.faults.length === 0
        ? check.warnings.map((warning) => (
            <FaultAlert key={`${warning.message} ${warning.detail}`} fault={warning} tone="warn" />
          ))
        : null}
      {settings.map((s) =>
        s.warning && off.has(s.name) ? (
          <Alert key={s.name} tone="warn" title={s.name}>
            {s.warning}
          </Alert>
        ) : null,
      )}
      {several && check.faults.length === 0 ? (
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
        <Alert
          tone={check.phases.some((p) => p.members.some((m) => m.restart)) ? 'warn' : 'info'}
          title="What it means for clients"
        >
          {check.notes.map((note) => (
            <p key={note}>{note}</p>
          ))}
        </Alert>
      ) : null}
    </>
  )
}

/** Where what refuses a change can be dealt with. */
function wayOut(fault: Fault, name: string) {
  if (fault.code === 'setting.of_cluster')
    return (
      <Link href={`/instances/${name}/settings/cluster`} className="font-medium text-accent hover:underline">
        Settings of the cluster
      </Link>
    )
  if (fault.code === 'setting.unprotected')
    return (
      <Button asChild size="small">
        <Link href={`/instances/${name}/replication`}>Add a standby</Link>
      </Button>
    )
  return undefined
}

function Applying({
  operationId,
  onClose,
  onApplied,
}: Pick<ReviewProps, 'onClose' | 'onApplied'> & { operationId: OperationId }) {
  const watched = useOperation(operationId)
  const operation = watched?.operation ?? null
  const failed = operation?.state === 'failed' || operation?.state === 'cancelled'
  const succeeded = operation?.state === 'succeeded'
  const applied = useEffectEvent(() => {
    onApplied({ operationId, confirmed: confirmedIn(operation?.result) ?? [] })
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
