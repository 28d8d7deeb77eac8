'use client'
import { FlashbackCounts, type OperationId } from '@floe/domain'
import type { ReactNode } from 'react'
import { ComparisonCounts, comparisonInWords } from './comparison-counts'
import { OperationProgress } from './operation-progress'
import { RowsPanel } from './rows-panel'
import { useOrdered } from './use-order'

/** A result compared with its table; rows can be selected where a key names them. */
export function ComparePanel({
  operationId,
  selected,
  onSelect,
  onAgain,
  children,
}: {
  operationId: OperationId
  selected: ReadonlySet<number>
  onSelect: (selected: ReadonlySet<number>) => void
  onAgain: () => void
  children: ReactNode
}) {
  const watched = useOrdered(operationId)
  const counts = FlashbackCounts.safeParse(watched?.operation?.result).data ?? null
  if (!watched) return null
  if (!counts) return <OperationProgress watched={watched} title="Comparing rows" onAgain={onAgain} />
  return (
    <div className="flex flex-col gap-3 rounded-md border border-line p-3">
      <p className="text-sm font-medium">{comparisonInWords(counts)}</p>
      <ComparisonCounts
        comparison={counts}
        then={null}
        at={watched.operation?.endedAt ?? null}
        on={watched.operation?.instanceName ?? null}
      />
      <RowsPanel
        operationId={operationId}
        counts={counts}
        selected={selected}
        // without a key no row can be named
        {...(counts.keyColumns ? { onSelect } : {})}
      >
        {counts.keyColumns ? children : null}
      </RowsPanel>
    </div>
  )
}
