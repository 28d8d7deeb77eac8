'use client'
import type { OperationId } from '@floe/domain'
import { Alert, Button, FaultAlert } from '@floe/ui'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from '../instance/instance-context'
import { Refusal } from '../operation/refusal'
import { OperationProgress } from './operation-progress'
import type { useActivity } from './use-activity'
import { useFlashBackHint } from './use-flash-back-hint'
import { useOrdered } from './use-order'

/** Why no large changes are shown: the page works without them. */
export function ActivityFault({
  activity: { fault, retry },
  database,
}: {
  activity: ReturnType<typeof useActivity>
  database: string
}) {
  if (!fault) return null
  if (fault.code === 'flashback.not_prepared') return <NotPrepared database={database} />
  if (fault.code === 'flashback.older_engine')
    return (
      <Alert title="Large changes are not marked">
        The engine that runs is of an earlier version. Run <code className="font-mono">./floe up</code> on its
        host, then restart the instance.
      </Alert>
    )
  return <FaultAlert fault={fault} onRetry={retry} tone="warn" />
}

/** A database without the extension, and the button that installs it there. */
function NotPrepared({ database }: { database: string }) {
  const trpc = useTRPC()
  const { instanceId } = useInstance()
  const hint = useFlashBackHint()
  const [operationId, setOperationId] = useState<OperationId | null>(null)
  const prepare = useMutation(
    trpc.flashback.prepare.mutationOptions({
      onSuccess: (ordered: { operationId: OperationId }) => setOperationId(ordered.operationId),
    }),
  )
  const watched = useOrdered(operationId)
  const begin = () => prepare.mutate({ instanceId, database, idempotencyKey: newIdempotencyKey() })
  return (
    <Alert
      title="Large changes and dropped tables are not shown yet"
      actions={
        operationId === null ? (
          <Button
            size="small"
            disabled={hint !== null}
            title={hint ?? undefined}
            busy={prepare.isPending}
            onClick={begin}
          >
            Prepare {database}
          </Button>
        ) : undefined
      }
    >
      <p>
        Database {database} lacks the extension flashback_table. A preview or a flashback installs it, too.
      </p>
      {prepare.error ? <Refusal error={prepare.error} /> : null}
      {watched ? (
        <div className="mt-2">
          <OperationProgress watched={watched} title={`Preparing ${database}`} onAgain={begin} />
        </div>
      ) : null}
    </Alert>
  )
}
