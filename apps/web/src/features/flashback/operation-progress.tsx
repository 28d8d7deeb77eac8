'use client'
import { formatBytes, type OperationId, remainingWords } from '@floe/domain'
import { Alert, Button, FaultAlert, Progress, useNow } from '@floe/ui'
import { useMutation } from '@tanstack/react-query'
import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { useTRPC } from '@/trpc/client'
import { useMayChange, viewerHint } from '../console/account-context'
import { OperationLink } from '../operation/operation-link'
import { OperationTime } from '../operation/operation-time'
import type { OperationDetail, WatchedOperation } from '../operation/use-operation'
import { useRefusalToast } from '../operation/use-refusal-toast'
import { EngineWords, hasEngineWords } from './engine-words'

/** The step that counts bytes, if one is at work. */
const workingStep = (operation: OperationDetail) =>
  operation.steps.find((step) => step.state === 'running' && step.work !== null) ?? null

/** `120 MB of 1.2 GB, 210 MB/s, about 5 s left` of the step at work; null while none counts bytes. */
export function paceInWords(operation: OperationDetail, now: number): string | null {
  const step = workingStep(operation)
  if (!step?.work || step.startedAt === null) return null
  const { doneBytes, totalBytes, remainingMs } = step.work
  const seconds = (now - step.startedAt) / 1_000
  const known = totalBytes !== null && totalBytes > 0 && doneBytes <= totalBytes
  return [
    known ? `${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}` : formatBytes(doneBytes),
    ...(seconds >= 0.5 && doneBytes > 0 ? [`${formatBytes(doneBytes / seconds)}/s`] : []),
    ...(remainingMs === null ? [] : [remainingWords(remainingMs)]),
  ].join(', ')
}

/**
 * A running operation as the page that began it shows it: how far it is, at which pace, and a way to cancel; what went wrong
 * where it failed. Nothing once it has succeeded: then the page shows the result.
 */
export function OperationProgress({
  watched,
  title,
  onAgain,
}: {
  watched: WatchedOperation
  /** What it does, as a sentence without its full stop. */
  title: string
  /** Begins it once more after it failed or was cancelled. */
  onAgain?: (() => void) | undefined
}) {
  const now = useNow()
  const { operation, operationId, fault } = watched
  const again = onAgain ? (
    <Button size="small" onClick={onAgain}>
      Try again
    </Button>
  ) : null
  const link = <OperationLink operationId={operationId} />
  if (!operation)
    return fault ? (
      <FaultAlert fault={fault} tone="warn" actions={link} />
    ) : (
      <Progress label={title} value={null} />
    )
  if (operation.state === 'succeeded') return null
  if (operation.state === 'failed' && operation.fault)
    return (
      <div>
        <FaultAlert
          fault={operation.fault}
          actions={
            <>
              {again}
              {link}
            </>
          }
        />
        {hasEngineWords(operation) ? (
          <EngineWords operationId={operationId} what="Show what the engine said" />
        ) : null}
      </div>
    )
  if (operation.state === 'failed' || operation.state === 'cancelled')
    return (
      <Alert
        tone="warn"
        title={operation.state === 'cancelled' ? 'Cancelled. Nothing was left behind.' : 'It failed.'}
        actions={
          <>
            {again}
            {link}
          </>
        }
      />
    )
  const pace = now === null ? null : paceInWords(operation, now)
  return (
    <div role="status" className="rounded-md border border-line bg-sunken/50 px-3 py-2.5">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm">
        <span className="min-w-0 flex-1 basis-52 font-medium">
          {operation.state === 'queued' ? `${title}: waiting for its turn` : `${title} …`}
        </span>
        <span className="text-xs text-ink-muted">
          <OperationTime startedAt={operation.startedAt} endedAt={operation.endedAt} />
        </span>
        <CancelButton operation={operation} />
      </div>
      <Progress label={title} value={operation.progress} showPercent className="mt-2" />
      <p className="mt-1.5 flex flex-wrap gap-x-3 gap-y-1 text-xs text-ink-muted tabular-nums">
        <span className="flex-1">{pace ?? operation.message ?? 'Starting'}</span>
        {link}
      </p>
      {fault ? <FaultAlert fault={fault} tone="warn" className="mt-2" /> : null}
    </div>
  )
}

function CancelButton({ operation }: { operation: OperationDetail }): ReactNode {
  const trpc = useTRPC()
  const mayChange = useMayChange()
  const refused = useRefusalToast()
  const cancel = useMutation(trpc.operation.cancel.mutationOptions({ onError: refused }))
  const cancelling = operation.state === 'cancelling' || cancel.isPending || cancel.isSuccess
  return (
    <Button
      size="small"
      disabled={!mayChange || !operation.cancellable || cancelling}
      busy={cancelling}
      title={mayChange ? undefined : viewerHint}
      onClick={() => cancel.mutate({ operationId: operation.operationId as OperationId })}
    >
      {cancelling ? null : <X aria-hidden />}
      Cancel
    </Button>
  )
}
