'use client'
import type { FlashbackCounts, OperationId } from '@floe/domain'
import { Alert, Button } from '@floe/ui'
import { useMutation } from '@tanstack/react-query'
import { Eye } from 'lucide-react'
import { type ReactNode, useEffect } from 'react'
import { useTRPC } from '@/trpc/client'
import { useMayAdminister } from '../console/account-context'
import { Refusal } from '../operation/refusal'
import { SampleRows } from './sample-rows'

export const rowsHint = 'Rows are shown to an owner or admin.'

/** Sample rows of a comparison, read when a person asks for them: seeing rows is a right of its own, and is recorded. */
export function RowsPanel({
  operationId,
  counts,
  selected,
  onSelect,
  children,
}: {
  operationId: OperationId
  counts: FlashbackCounts
  selected?: ReadonlySet<number>
  onSelect?: (selected: ReadonlySet<number>) => void
  /** What can be done with the selection. */
  children?: ReactNode
}) {
  const trpc = useTRPC()
  const mayAdminister = useMayAdminister()
  const read = useMutation(trpc.flashback.rows.mutationOptions())
  const { reset } = read
  // rows of another comparison are not these
  // biome-ignore lint/correctness/useExhaustiveDependencies: read again for each operation
  useEffect(() => reset(), [operationId, reset])
  if (counts.removed + counts.changed + counts.added === 0) return null
  if (read.data)
    return (
      <div className="flex flex-col gap-2">
        <SampleRows
          columns={read.data.columns}
          keyColumns={read.data.keyColumns}
          rows={read.data.samples}
          counts={counts}
          {...(onSelect ? { selected: selected ?? new Set<number>(), onSelect } : {})}
        />
        {children}
      </div>
    )
  return (
    <div className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5">
        <Button
          disabled={!mayAdminister}
          title={mayAdminister ? undefined : rowsHint}
          busy={read.isPending}
          onClick={() => read.mutate({ operationId })}
        >
          {read.isPending ? null : <Eye aria-hidden />}
          Show rows
        </Button>
        <span className="text-xs text-ink-muted">
          {mayAdminister ? 'An audit row records that you saw them. Rows are not stored.' : rowsHint}
        </span>
      </div>
      {read.error ? <Refusal error={read.error} /> : null}
      {read.isError ? (
        <Alert tone="info" title="Rows stay with the agent for 15 minutes">
          Compare once more to see them.
        </Alert>
      ) : null}
    </div>
  )
}
