'use client'
import {
  FlashbackCounts,
  FlashbackMade,
  FlashbackMerged,
  type FlashbackResult,
  FlashbackSwapped,
  formatBytes,
  type OperationId,
} from '@floe/domain'
import type { ReactNode } from 'react'
import { z } from 'zod'
import { InstanceProvider } from '../instance/instance-context'
import type { OperationDetail } from '../operation/use-operation'
import { ComparisonCounts, comparisonInWords } from './comparison-counts'
import { EngineWords, hasEngineWords } from './engine-words'
import { conflictsInWords, isGivenBack, mergedInWords } from './merge-plan'
import { MissingPieces } from './missing-pieces'
import { ResultActions } from './result-actions'
import { useResults } from './result-list'
import { rowsInWords } from './table-events'

const Asked = z.object({ database: z.string(), tableName: z.string().optional() })
/** A result that the operation was given. */
const Given = z.object({ result: z.number(), resultName: z.string() })

type Named = Pick<FlashbackResult, 'result' | 'resultName'>

/** What a flashback came to in words, with what can be done with its result, or why it failed; null of any other operation. */
export function flashbackOutcome(operation: OperationDetail): ReactNode | null {
  const asked = Asked.safeParse(operation.input).data
  if (hasEngineWords(operation))
    return <EngineWords operationId={operation.operationId as OperationId} what="Show what the engine said" />
  const told =
    operation.state === 'succeeded' && asked ? tell(operation, asked.tableName ?? 'The table') : null
  if (!asked || !told) return null
  return (
    <div className="flex min-w-0 flex-col gap-3">
      <h3 className="text-xs text-ink-muted">Result</h3>
      {told.words}
      {told.named && operation.instanceId ? (
        <InstanceProvider segment={operation.instanceId}>
          <StillThere named={told.named} database={asked.database} />
        </InstanceProvider>
      ) : null}
    </div>
  )
}

function tell(operation: OperationDetail, tableName: string): { words: ReactNode; named?: Named } | null {
  const { kind, input, result } = operation
  const given = Given.safeParse(input).data
  const sentence = (text: string) => <p className="font-medium break-words">{text}</p>
  switch (kind) {
    case 'flashback-table':
    case 'flashback-dropped-table': {
      const made = FlashbackMade.safeParse(result).data
      if (!made) return null
      const size = formatBytes(made.bytes)
      // under its own name it is that table again, and no result
      if (isGivenBack(made.resultName, tableName))
        return {
          words: (
            <>
              {sentence(`${made.resultName} is back, with ${rowsInWords(made.rows)} (${size}).`)}
              <div className="text-sm text-ink-muted">
                <MissingPieces missing={made.missing} />
              </div>
            </>
          ),
        }
      const text = `${rowsInWords(made.rows)} of ${tableName} are in ${made.resultName} (${size}).`
      return { words: sentence(text), named: made }
    }
    case 'preview-flashback':
    case 'compare-flashback': {
      const counts = FlashbackCounts.safeParse(result).data
      if (!counts) return null
      const words = (
        <>
          {sentence(comparisonInWords(counts))}
          <ComparisonCounts
            comparison={counts}
            then={kind === 'preview-flashback' ? 'that moment' : null}
            at={operation.endedAt}
            on={operation.instanceName}
          />
        </>
      )
      return given ? { words, named: given } : { words }
    }
    case 'merge-flashback': {
      const merged = FlashbackMerged.safeParse(result).data
      if (!merged || !given) return null
      const counted = input.dryRun === true ? 'Only counted, nothing was changed: ' : ''
      const text = `${counted}${mergedInWords(merged)} in ${tableName}.${conflictsInWords(merged)}`
      return { words: sentence(text), named: given }
    }
    case 'swap-flashback': {
      const swapped = FlashbackSwapped.safeParse(result).data
      if (!swapped || !given) return null
      const text = `${tableName} got ${rowsInWords(swapped.rowsNow)}; the ${rowsInWords(swapped.rowsBefore)} that it had before went to ${given.resultName}.`
      return { words: sentence(text), named: { ...given, result: swapped.result } }
    }
    case 'drop-flashback':
      return given ? { words: sentence(`${given.resultName} was dropped.`) } : null
    default:
      return null
  }
}

/** The buttons of a result as the Flashback page has them, as long as it is there. */
function StillThere({ named, database }: { named: Named; database: string }) {
  const { results } = useResults(database)
  if (!results) return null
  const found = results.find((r) => r.result === named.result || r.resultName === named.resultName)
  if (!found) return <p className="text-sm text-ink-muted">{named.resultName} does not exist any more.</p>
  return <ResultActions result={{ ...found, database }} />
}
