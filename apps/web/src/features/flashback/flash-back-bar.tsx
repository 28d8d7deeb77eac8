'use client'
import { FlashbackMade, type OperationId } from '@floe/domain'
import { Button } from '@floe/ui'
import { useMutation } from '@tanstack/react-query'
import { History, ScanSearch } from 'lucide-react'
import { useEffect, useRef } from 'react'
import { useTRPC } from '@/trpc/client'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from '../instance/instance-context'
import { Refusal } from '../operation/refusal'
import type { WatchedOperation } from '../operation/use-operation'
import { clockText } from './event-mark'
import { MadeResult } from './made-result'
import { freeResultName } from './merge-plan'
import { OperationProgress } from './operation-progress'
import type { Results } from './result-list'
import { type TableChoice, tableNameOf } from './table-list'
import { useFlashBackHint } from './use-flash-back-hint'
import type { Preview } from './use-preview'
import type { Target } from './use-target'
import { writtenMoment } from './window-scale'

/**
 * The one button: a table with the rows of that moment, beside the present one; then what can be done with it. The bar stays in
 * view while the page is longer than the screen.
 */
export function FlashBackBar({
  target,
  table,
  moment,
  database,
  results,
  watched,
  preview,
  now,
  onTarget,
}: {
  target: Target
  table: TableChoice
  moment: number
  database: string
  results: Results
  watched: WatchedOperation | null
  preview: Preview
  now: number
  onTarget: (change: Partial<Target>) => void
}) {
  const { instanceId } = useInstance()
  const trpc = useTRPC()
  const hint = useFlashBackHint()
  const order = useMutation(
    trpc.flashback.to.mutationOptions({
      onSuccess: ({ operationId }: { operationId: OperationId }) => onTarget({ flashback: operationId }),
    }),
  )
  const state = watched?.operation?.state ?? null
  const made = FlashbackMade.safeParse(watched?.operation?.result).data ?? null
  const place = useRef<HTMLDivElement | null>(null)
  const isMade = made !== null
  // it takes the place of a bar that was in view wherever the page was scrolled to
  useEffect(() => {
    if (isMade) place.current?.scrollIntoView({ block: 'nearest', behavior: 'smooth' })
  }, [isMade])
  const name = tableNameOf(table)
  const resultName = freeResultName(
    table.oid,
    table.schema,
    (results.results ?? []).map((r) => r.resultName),
  )
  const begin = () =>
    order.mutate({
      instanceId,
      database,
      table: table.oid,
      tableName: name,
      at: writtenMoment(moment),
      ...(resultName ? { resultName } : {}),
      idempotencyKey: newIdempotencyKey(),
    })
  if (made && target.flashback)
    return (
      <div ref={place} className="scroll-mb-16 md:scroll-mb-4 border-t border-line px-4 py-3.5">
        <MadeResult
          made={made}
          operationId={target.flashback}
          table={table}
          moment={moment}
          database={database}
          results={results}
          now={now}
          onAgain={() => onTarget({ flashback: null })}
        />
      </div>
    )
  const idle = target.flashback === null || state === 'failed' || state === 'cancelled'
  return (
    <div className="sticky bottom-[calc(3.25rem+env(safe-area-inset-bottom))] z-20 flex flex-col gap-3 rounded-b-lg border-t border-line bg-surface px-4 py-3 md:bottom-0 shadow-[0_-4px_12px_rgb(0_0_0/6%)]">
      {order.error ? <Refusal error={order.error} /> : null}
      {watched ? (
        <OperationProgress watched={watched} title={`Flashing back ${name}`} onAgain={begin} />
      ) : null}
      {idle ? (
        <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
          <p className="min-w-0 flex-1 basis-72 text-xs text-ink-muted">
            <span className="block text-sm font-medium text-ink [overflow-wrap:anywhere]">
              {name} as of <span className="tabular-nums">{clockText(moment, now)}</span>
            </span>
            {hint ??
              `Makes ${table.schema}.${resultName ?? `polar_flashback_${table.oid}`} beside it. The table itself is not changed.`}
          </p>
          <PreviewButton preview={preview} />
          <Button
            variant="primary"
            size="large"
            disabled={hint !== null}
            title={hint ?? undefined}
            busy={order.isPending}
            onClick={begin}
          >
            {order.isPending ? null : <History aria-hidden />}
            Flash back
          </Button>
        </div>
      ) : null}
    </div>
  )
}

function PreviewButton({ preview: { busy, begin, counts, readerName } }: { preview: Preview }) {
  const mayChange = useMayChange()
  return (
    <Button
      size="large"
      disabled={!mayChange}
      title={mayChange ? 'Compares the rows of then with those of now; reads only' : viewerHint}
      busy={busy}
      onClick={begin}
    >
      {busy ? null : <ScanSearch aria-hidden />}
      {counts ? 'Preview again' : readerName ? `Preview on ${readerName}` : 'Preview'}
    </Button>
  )
}
