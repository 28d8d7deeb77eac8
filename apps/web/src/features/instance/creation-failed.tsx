'use client'
import { Alert, Badge, Button, ConfirmDialog, FaultAlert, PageHeader } from '@floe/ui'
import { useMutation, useQuery } from '@tanstack/react-query'
import { CircleX, Pencil, Trash2 } from 'lucide-react'
import Link from 'next/link'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { editAndTryAgain } from '../console/page-addresses'
import { OperationLink } from '../operation/operation-link'
import { refusalOf } from '../operation/refusal'
import { type InstanceDetail, useInstance } from './instance-context'

/** The state of an instance that was never made. */
export function CreationFailedBadge() {
  return (
    <Badge tone="bad">
      <CircleX aria-hidden />
      creation failed
    </Badge>
  )
}

/**
 * The page of an instance whose creation failed and could not be undone: why, and how to be rid of it. It has no charts
 * and no settings, because there is no engine.
 */
export function CreationFailed() {
  const instance = useInstance()
  const trpc = useTRPC()
  const operationId = instance.creationFailed?.operationId
  const operation = useQuery({
    ...trpc.operation.show.queryOptions({ operationId: operationId as NonNullable<typeof operationId> }),
    enabled: operationId !== undefined,
  })
  if (operationId === undefined) return null
  const why = operation.data?.operation.fault ?? null
  const standby = instance.cluster.memberRole !== 'primary'
  return (
    <>
      <PageHeader title={instance.name} actions={<Remove instance={instance} standby={standby} />}>
        <div className="mt-1.5 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-ink-muted">
          <CreationFailedBadge />
          <span>
            on <span className="text-ink">{instance.hostName}</span>
          </span>
        </div>
      </PageHeader>
      <div className="flex flex-col gap-3">
        {why ? <FaultAlert fault={why} /> : null}
        <Alert tone="warn" title={`"${instance.name}" was not created`}>
          <p>
            Its engine has never run. What its creation left on host “{instance.hostName}” could not be
            undone, so its name is in use until you remove it.
          </p>
          <p className="mt-2 flex flex-wrap gap-x-4 gap-y-1">
            <OperationLink operationId={operationId} />
            {standby ? null : (
              <Link
                href={editAndTryAgain(operationId)}
                className="inline-flex items-center gap-1 font-medium text-accent hover:underline"
              >
                <Pencil aria-hidden className="size-3.5" />
                Edit and try again
              </Link>
            )}
          </p>
        </Alert>
      </div>
    </>
  )
}

function Remove({ instance, standby }: { instance: InstanceDetail; standby: boolean }) {
  const trpc = useTRPC()
  const router = useRouter()
  const mayChange = useMayChange()
  const [asking, setAsking] = useState(false)
  const asked = {
    onSuccess: ({ operationId }: { operationId: string }) => router.push(`/operations/${operationId}`),
  }
  const remove = useMutation(trpc.instance.delete.mutationOptions(asked))
  const removeStandby = useMutation(trpc.standby.remove.mutationOptions(asked))
  const { error, isPending } = standby ? removeStandby : remove
  const silent = instance.hostState !== 'online'
  const { instanceId, name } = instance
  return (
    <>
      <Button
        variant="danger-quiet"
        disabled={!mayChange}
        title={mayChange ? undefined : viewerHint}
        onClick={() => setAsking(true)}
      >
        <Trash2 aria-hidden />
        Remove
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={`Remove ${name}?`}
        confirmLabel="Remove"
        danger
        busy={isPending}
        {...refusalOf(error)}
        onConfirm={() => {
          const ask = { instanceId, confirmName: name, idempotencyKey: newIdempotencyKey() }
          if (standby) removeStandby.mutate({ ...ask, unreachableHost: silent ? instance.hostName : null })
          else remove.mutate(ask)
        }}
      >
        <p>
          What its creation left on host “{instance.hostName}” is deleted, and the name is free again.
          {silent
            ? ' The host is unreachable: files there stay, and the instance is fenced if the host returns.'
            : ''}
        </p>
      </ConfirmDialog>
    </>
  )
}
