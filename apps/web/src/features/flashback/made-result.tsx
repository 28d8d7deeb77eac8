'use client'
import { type FlashbackMade, formatBytes, type OperationId } from '@floe/domain'
import { Alert, Button } from '@floe/ui'
import { useState } from 'react'
import { OperationLink } from '../operation/operation-link'
import { clockText } from './event-mark'
import { ResultActions } from './result-actions'
import type { Results } from './result-list'
import { rowsInWords } from './table-events'
import { type TableChoice, tableNameOf } from './table-list'

/** What a flashback of this page has made, and what can be done with it; or that it was dropped since. */
export function MadeResult({
  made,
  operationId,
  table,
  moment,
  database,
  results: { results, readAt },
  now,
  onAgain,
}: {
  made: FlashbackMade
  operationId: OperationId
  table: TableChoice
  moment: number
  database: string
  results: Results
  now: number
  onAgain: () => void
}) {
  const [shownAt] = useState(() => Date.now())
  const name = tableNameOf(table)
  // a swap leaves the name and may change the number
  const found = results?.find((r) => r.result === made.result || r.resultName === made.resultName)
  if (!found && readAt > shownAt)
    return (
      <Alert
        title={`${made.resultName} does not exist any more`}
        actions={<Button onClick={onAgain}>Flash back again…</Button>}
      >
        It had the rows of {name} as of {clockText(moment, now)}, and was dropped or renamed since.
      </Alert>
    )
  return (
    <div className="flex flex-col gap-3">
      <Alert
        tone="good"
        title={`${name} as of ${clockText(moment, now)} is in ${made.resultName} (${rowsInWords(made.rows)}, ${formatBytes(made.bytes)})`}
        actions={<OperationLink operationId={operationId} />}
      >
        The flashback did not change {name}. Merge puts rows back into it.
      </Alert>
      <ResultActions
        primary
        result={{
          ...(found ?? {
            result: made.result,
            resultName: made.resultName,
            table: table.oid,
            tableName: name,
          }),
          database,
        }}
      />
    </div>
  )
}
