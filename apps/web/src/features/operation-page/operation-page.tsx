'use client'
import { endedOperationStates, OperationId } from '@floe/domain'
import {
  Alert,
  Button,
  Card,
  ConfirmDialog,
  CopyButton,
  FaultAlert,
  formatTime,
  Moment,
  PageHeader,
  Progress,
  SkeletonRows,
  StateBadge,
  useToast,
} from '@floe/ui'
import { useMutation } from '@tanstack/react-query'
import { ListChecks, Pencil, RotateCw, X } from 'lucide-react'
import Link from 'next/link'
import { useRouter } from 'next/navigation'
import { useEffect, useRef, useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { isNotFound } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { NotThere } from '../console/not-there'
import { editAndTryAgain } from '../console/page-addresses'
import { OperationLink } from '../operation/operation-link'
import { OperationSteps } from '../operation/operation-steps'
import { OperationTime } from '../operation/operation-time'
import { refusalOf } from '../operation/refusal'
import { type OperationDetail, type OperationLogLine, useOperation } from '../operation/use-operation'
import { useRefusalToast } from '../operation/use-refusal-toast'
import { OperationAsked } from './operation-asked'

/** One operation, live: what was asked, how far it is, what it says, how it ended. */
export function OperationPage({ segment }: { segment: string }) {
  const operationId = OperationId.safeParse(segment).data ?? null
  const watched = useOperation(operationId)
  const operation = watched?.operation ?? null
  if (operationId === null || (!operation && isNotFound(watched?.fault ?? null)))
    return (
      <NotThere
        title="Operation"
        what={`Operation "${segment}" does not exist`}
        icon={ListChecks}
        list={{ href: '/operations', label: 'All operations' }}
      >
        It may have been removed at the end of its retention.
      </NotThere>
    )
  if (!operation)
    return watched?.fault ? (
      <FaultAlert fault={watched.fault} onRetry={() => window.location.reload()} />
    ) : (
      <Card>
        <SkeletonRows label="Loading the operation" />
      </Card>
    )
  const ended = endedOperationStates.includes(operation.state)
  return (
    <>
      <PageHeader
        title={
          <>
            {operation.title}
            {operation.instanceName ? ` ${operation.instanceName}` : ''}
          </>
        }
        actions={<OperationActions operation={operation} />}
      >
        <div className="mt-1.5 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-ink-muted">
          <StateBadge state={operation.state} of="operation" />
          <span>
            by {operation.actorName}, <Moment at={operation.createdAt} />
          </span>
          <span>
            took <OperationTime startedAt={operation.startedAt} endedAt={operation.endedAt} />
          </span>
        </div>
      </PageHeader>
      <div className="flex flex-col gap-3">
        {watched?.fault && !ended ? <FaultAlert fault={watched.fault} tone="warn" /> : null}
        {!ended ? (
          <Progress label={`${operation.title}, progress`} value={operation.progress} showPercent />
        ) : null}
        {operation.message && !operation.fault ? (
          <p className="text-sm text-ink-muted">{operation.message}</p>
        ) : null}
        {operation.fault ? <FaultAlert fault={operation.fault} /> : null}
        {operation.retriedBy ? (
          <Alert title="This operation was retried">
            <OperationLink operationId={operation.retriedBy}>Open the retry</OperationLink>
          </Alert>
        ) : null}
        {operation.retryOf ? (
          <Alert title="This is a retry of an operation that did not succeed">
            <OperationLink operationId={operation.retryOf}>Open the earlier operation</OperationLink>
          </Alert>
        ) : null}
        <div className="grid grid-cols-1 gap-3 xl:grid-cols-2">
          <Card title="Steps">
            <OperationSteps steps={operation.steps} />
          </Card>
          <Card title="Request and outcome">
            <OperationAsked operation={operation} />
          </Card>
        </div>
        <LogCard log={watched?.log ?? []} ended={ended} />
      </div>
    </>
  )
}

function OperationActions({ operation }: { operation: OperationDetail }) {
  const trpc = useTRPC()
  const toast = useToast()
  const router = useRouter()
  const refused = useRefusalToast()
  const mayChange = useMayChange()
  const [asking, setAsking] = useState(false)
  const cancel = useMutation(
    trpc.operation.cancel.mutationOptions({
      onSuccess: () => {
        setAsking(false)
        toast({
          tone: 'info',
          title: 'Cancel requested',
          description: 'The running step is being cancelled.',
        })
      },
    }),
  )
  const retry = useMutation(
    trpc.operation.retry.mutationOptions({
      onSuccess: ({ operationId }) => router.push(`/operations/${operationId}`),
      onError: refused,
    }),
  )
  // a creation that failed is tried again with what was wrong put right; the same again fails the same way
  const failedCreation =
    operation.kind === 'create-instance' && (operation.state === 'failed' || operation.state === 'cancelled')
  const [here, setHere] = useState('')
  useEffect(() => setHere(window.location.href), [])
  return (
    <>
      <CopyButton text={here} what="link" showLabel />
      {operation.instanceName && !failedCreation ? (
        <Button asChild>
          <Link href={`/instances/${operation.instanceName}`}>Open {operation.instanceName}</Link>
        </Button>
      ) : null}
      {failedCreation && mayChange ? (
        <Button variant="primary" asChild>
          <Link href={editAndTryAgain(operation.operationId)}>
            <Pencil aria-hidden />
            Edit and try again
          </Link>
        </Button>
      ) : null}
      {operation.retryable ? (
        <Button
          variant={failedCreation ? 'secondary' : 'primary'}
          busy={retry.isPending}
          disabled={!mayChange}
          title={mayChange ? undefined : viewerHint}
          onClick={() =>
            retry.mutate({ operationId: operation.operationId, idempotencyKey: newIdempotencyKey() })
          }
        >
          <RotateCw aria-hidden />
          Retry
        </Button>
      ) : null}
      {operation.cancellable ? (
        <Button
          variant="danger-quiet"
          disabled={!mayChange}
          title={mayChange ? undefined : viewerHint}
          onClick={() => setAsking(true)}
        >
          <X aria-hidden />
          Cancel operation
        </Button>
      ) : null}
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title="Cancel this operation?"
        confirmLabel="Cancel operation"
        danger
        busy={cancel.isPending}
        {...refusalOf(cancel.error)}
        onConfirm={() => cancel.mutate({ operationId: operation.operationId })}
      >
        <p>
          The running step is cancelled where possible. The effects of earlier steps stay; the operation may
          still succeed if its last step ends first.
        </p>
      </ConfirmDialog>
    </>
  )
}

function LogCard({ log, ended }: { log: readonly OperationLogLine[]; ended: boolean }) {
  const box = useRef<HTMLDivElement | null>(null)
  const atEnd = useRef(true)
  const length = log.length
  // biome-ignore lint/correctness/useExhaustiveDependencies: follows the log's growth, unless the reader scrolled up
  useEffect(() => {
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [length])
  return (
    <Card
      title="Log"
      bodyClassName="p-0"
      actions={
        <CopyButton
          what="log"
          text={log.map((l) => `${formatTime(l.at)} ${l.step ?? ''} ${l.text}`).join('\n')}
          showLabel
        />
      }
    >
      <section
        ref={box}
        aria-label="Log lines"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget
          atEnd.current = scrollHeight - scrollTop - clientHeight < 24
        }}
        className="max-h-96 overflow-auto px-4 py-3 font-mono text-xs leading-5"
      >
        {log.length === 0 ? (
          <p className="text-ink-muted">{ended ? 'Nothing was logged.' : 'Nothing has been logged yet.'}</p>
        ) : (
          log.map((line) => (
            <p key={line.id} className="flex gap-3">
              <span className="shrink-0 text-ink-muted">{formatTime(line.at, false).slice(11)}</span>
              {line.step ? <span className="shrink-0 text-accent">{line.step}</span> : null}
              <span className="min-w-0 break-words whitespace-pre-wrap">{line.text}</span>
            </p>
          ))
        )}
      </section>
    </Card>
  )
}
