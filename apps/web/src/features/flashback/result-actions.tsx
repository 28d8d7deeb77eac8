'use client'
import type { FlashbackResult, OperationId } from '@floe/domain'
import { Button, Menu, MenuItem } from '@floe/ui'
import { useMutation } from '@tanstack/react-query'
import { ArrowLeftRight, ChevronDown, GitCompare, GitMerge, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from '../instance/instance-context'
import { Refusal } from '../operation/refusal'
import { ComparePanel } from './compare-panel'
import { DownloadButton } from './download-button'
import { DropDialog } from './drop-dialog'
import { MergeDialog } from './merge-dialog'
import { whyNotRunning } from './not-running'
import { SwapDialog } from './swap-dialog'
import type { Selection } from './use-merge'
import type { ResultRef } from './use-order'

/** Why nothing can be done with the table of a result here; null where something can. */
function useWhyNot(result: Pick<FlashbackResult, 'table' | 'tableName'>): string | null {
  const mayChange = useMayChange()
  const { cluster, state } = useInstance()
  if (!mayChange) return viewerHint
  const notRunning = whyNotRunning(state)
  if (notRunning) return notRunning
  if (cluster.memberRole === 'standby') return 'A standby is read-only: do this on the primary.'
  if (result.table === null) return `${result.tableName} does not exist any more.`
  return null
}

/** What can be done with a table that a flashback made. */
export function ResultActions({ result, primary }: { result: ResultRef; primary?: boolean }) {
  const [comparing, setComparing] = useState<OperationId | null>(null)
  const [asking, setAsking] = useState<'merge' | 'swap' | 'drop' | null>(null)
  const [selection, setSelection] = useState<Selection | null>(null)
  const { instanceId } = useInstance()
  const trpc = useTRPC()
  const mayChange = useMayChange()
  const whyNot = useWhyNot(result)
  const standby = useInstance().cluster.memberRole === 'standby'
  const named = {
    instanceId,
    database: result.database,
    result: result.result,
    resultName: result.resultName,
  }
  const compare = useMutation(
    trpc.flashback.compare.mutationOptions({
      onSuccess: ({ operationId }: { operationId: OperationId }) => setComparing(operationId),
    }),
  )
  const beginCompare = () => {
    setSelection(null)
    compare.mutate({ ...named, tableName: result.tableName, idempotencyKey: newIdempotencyKey() })
  }
  const cannotCompare = mayChange ? (result.table === null ? whyNot : null) : viewerHint
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-2">
        <Button
          variant={primary ? 'primary' : 'secondary'}
          disabled={whyNot !== null}
          title={whyNot ?? undefined}
          onClick={() => {
            setSelection(null)
            setAsking('merge')
          }}
        >
          <GitMerge aria-hidden />
          Merge…
        </Button>
        <Button
          disabled={cannotCompare !== null}
          title={cannotCompare ?? undefined}
          busy={compare.isPending}
          onClick={beginCompare}
        >
          {compare.isPending ? null : <GitCompare aria-hidden />}
          Compare
        </Button>
        <DownloadButton named={named} />
        <Menu
          trigger={
            <Button aria-label={`More for ${result.resultName}`}>
              More
              <ChevronDown aria-hidden />
            </Button>
          }
        >
          <MenuItem disabled={whyNot !== null} onSelect={() => setAsking('swap')}>
            <ArrowLeftRight aria-hidden />
            Swap…
          </MenuItem>
          <MenuItem danger disabled={!mayChange || standby} onSelect={() => setAsking('drop')}>
            <Trash2 aria-hidden />
            Drop result…
          </MenuItem>
        </Menu>
      </div>
      {compare.error ? <Refusal error={compare.error} /> : null}
      {comparing ? (
        <ComparePanel
          operationId={comparing}
          selected={selection?.selected ?? new Set()}
          onSelect={(selected) => setSelection({ comparison: comparing, selected })}
          onAgain={beginCompare}
        >
          <div className="flex flex-wrap items-center gap-3">
            <Button
              disabled={whyNot !== null || !selection || selection.selected.size === 0}
              title={whyNot ?? undefined}
              onClick={() => setAsking('merge')}
            >
              <GitMerge aria-hidden />
              Merge selected rows…
            </Button>
            <span className="text-xs text-ink-muted" role="status">
              {selection?.selected.size ?? 0} selected
            </span>
          </div>
        </ComparePanel>
      ) : null}
      {asking === 'merge' ? (
        <MergeDialog
          result={result}
          selection={selection}
          onClose={(begun) => {
            setAsking(null)
            // what was compared is not what there is now
            if (begun) setComparing(null)
          }}
        />
      ) : null}
      {asking === 'swap' ? <SwapDialog result={result} onClose={() => setAsking(null)} /> : null}
      {asking === 'drop' ? <DropDialog named={named} onClose={() => setAsking(null)} /> : null}
    </div>
  )
}
