'use client'
import { type OperationId, operationRecord } from '@floe/domain'
import { Button } from '@floe/ui'
import { useMutation } from '@tanstack/react-query'
import { useTRPC } from '@/trpc/client'
import { useMayAdminister } from '../console/account-context'
import { Refusal } from '../operation/refusal'
import type { OperationDetail } from '../operation/use-operation'

/** Whether the engine refused an operation in words that its fault leaves out, because they may have values of rows. */
export const hasEngineWords = ({
  kind,
  state,
  fault,
}: Pick<OperationDetail, 'kind' | 'state' | 'fault'>): boolean =>
  operationRecord(kind).keepsRows === true && state === 'failed' && fault?.code === 'flashback.refused'

/** What the engine said, which may have values of rows: read when somebody who may see rows asks for it. */
export function EngineWords({ operationId, what }: { operationId: OperationId; what: string }) {
  const trpc = useTRPC()
  const mayAdminister = useMayAdminister()
  const read = useMutation(trpc.flashback.rows.mutationOptions())
  if (!mayAdminister) return null
  if (read.data)
    return (
      <p className="mt-1 font-mono text-xs break-words text-ink">
        {read.data.conflictExample ?? 'Nothing was kept.'}
      </p>
    )
  return (
    <>
      <Button
        variant="link"
        size="small"
        className="mt-1"
        busy={read.isPending}
        title="An audit row records that you saw it"
        onClick={() => read.mutate({ operationId })}
      >
        {what}
      </Button>
      {read.error ? <Refusal error={read.error} /> : null}
    </>
  )
}
