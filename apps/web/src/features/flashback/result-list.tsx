'use client'
import { type Fault, formatBytes } from '@floe/domain'
import { Card, FaultAlert, Moment, SkeletonRows } from '@floe/ui'
import { useQuery } from '@tanstack/react-query'
import { useTRPC } from '@/trpc/client'
import { useStandingFault } from '../console/use-standing-fault'
import { useInstance } from '../instance/instance-context'
import { ResultActions } from './result-actions'
import { isSaidOnce } from './said-once'

const READ_MS = 5_000

export type Results = ReturnType<typeof useResults>

/** Tables that flashbacks made in a database, by the console or by SQL. */
export function useResults(database: string | null) {
  const { instanceId, state } = useInstance()
  const trpc = useTRPC()
  const read = useQuery(
    trpc.flashback.results.queryOptions(
      { instanceId, database: database ?? '' },
      {
        enabled: database !== null && state === 'running',
        refetchInterval: READ_MS,
        retry: false,
      },
    ),
  )
  return {
    results: read.data ?? null,
    /** By the browser's clock. */
    readAt: read.dataUpdatedAt,
    fault: useStandingFault(read, `${instanceId} ${database}`),
    retry: () => void read.refetch(),
  }
}

export function ResultList({
  database,
  results: { results, fault, retry },
  except,
  above,
}: {
  database: string
  results: Results
  /** The name of the one that is shown above. */
  except: string | null
  /** What the page says already. */
  above: Fault | null
}) {
  if (results === null && isSaidOnce(fault, above)) return null
  const shown = results?.filter((r) => r.resultName !== except) ?? []
  return (
    <Card
      aria-label="Results of flashbacks"
      title="Results"
      description={`Tables in database ${database} that flashbacks made, also those made by SQL. They are kept until somebody drops them.`}
      bodyClassName="p-0"
    >
      {fault && !isSaidOnce(fault, above) ? (
        <FaultAlert fault={fault} onRetry={retry} tone="warn" className="m-3" />
      ) : null}
      {results === null ? (
        fault ? null : (
          <SkeletonRows rows={2} label="Reading the results" />
        )
      ) : shown.length === 0 ? (
        <p className="px-4 py-3 text-sm text-ink-muted">
          {except === null ? 'No results.' : 'No other results.'} A flashback makes a table beside the present
          one, with the rows of that moment.
        </p>
      ) : (
        <ul aria-label="Results" className="divide-y divide-line">
          {shown.map((result) => (
            <li key={result.result} className="flex flex-col gap-2.5 px-4 py-3">
              <div className="flex flex-wrap items-baseline gap-x-3 gap-y-1 text-sm">
                <strong className="font-semibold [overflow-wrap:anywhere]">{result.resultName}</strong>
                <span className="text-ink-muted">
                  {result.at === null ? (
                    <>rows that {result.tableName} had before a swap</>
                  ) : (
                    <>
                      {result.tableName} as of <Moment at={result.at} />
                    </>
                  )}
                </span>
                <span className="text-ink-muted tabular-nums" title="pg_total_relation_size()">
                  {result.sizeBytes === null ? '–' : formatBytes(result.sizeBytes)}
                </span>
                <span className="text-ink-muted">owner {result.owner}</span>
                {result.table === null ? (
                  <span className="text-warn">{result.tableName} does not exist any more</span>
                ) : null}
              </div>
              <ResultActions result={{ ...result, database }} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}
