'use client'
import { type Fault, type FlashbackLost, FlashbackMade, formatBytes, type OperationId } from '@floe/domain'
import { Age, Alert, Badge, Button, Card, Copyable, FaultAlert, Moment, SkeletonRows } from '@floe/ui'
import { useMutation, useQuery } from '@tanstack/react-query'
import { History, ScanSearch } from 'lucide-react'
import { useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useStandingFault } from '../console/use-standing-fault'
import { useInstance } from '../instance/instance-context'
import { OperationLink } from '../operation/operation-link'
import { Refusal } from '../operation/refusal'
import { GiveBackDialog, type Place } from './give-back-dialog'
import { isGivenBack } from './merge-plan'
import { MissingPieces } from './missing-pieces'
import { OperationProgress } from './operation-progress'
import { ResultActions } from './result-actions'
import { isSaidOnce } from './said-once'
import { justBefore, rowsInWords } from './table-events'
import { useFlashBackHint } from './use-flash-back-hint'
import { useOrdered } from './use-order'
import type { Target } from './use-target'

const READ_MS = 10_000

/** Tables that were dropped, truncated or rewritten and whose former files are kept, each with one button to have it back. */
export function LostTables({
  database,
  above,
  onTarget,
}: {
  database: string
  /** What the page says already. */
  above: Fault | null
  onTarget: (change: Partial<Target>) => void
}) {
  const { instanceId, state } = useInstance()
  const trpc = useTRPC()
  const read = useQuery(
    trpc.flashback.lost.queryOptions(
      { instanceId, database },
      {
        enabled: state === 'running',
        refetchInterval: READ_MS,
        retry: false,
      },
    ),
  )
  const fault = useStandingFault(read, `${instanceId} ${database}`)
  if (read.data === undefined && isSaidOnce(fault, above)) return null
  return (
    <Card
      aria-label="Dropped, truncated and rewritten tables"
      title="Dropped, truncated and rewritten tables"
      description={`Of database ${database}, as far as their files are kept (polar_enable_fast_recovery_area).`}
      bodyClassName="p-0"
    >
      {fault && !isSaidOnce(fault, above) ? (
        <FaultAlert fault={fault} onRetry={() => void read.refetch()} tone="warn" className="m-3" />
      ) : null}
      {read.data === undefined ? (
        fault ? null : (
          <SkeletonRows rows={2} label="Reading the lost tables" />
        )
      ) : read.data.length === 0 ? (
        <p className="px-4 py-3 text-sm text-ink-muted">
          None: no table was dropped, truncated or rewritten in the window.
        </p>
      ) : (
        <ul aria-label="Lost tables" className="divide-y divide-line">
          {read.data.map((lost) => (
            <LostTable
              key={`${lost.table} ${lost.lsn}`}
              lost={lost}
              database={database}
              onTarget={onTarget}
            />
          ))}
        </ul>
      )}
    </Card>
  )
}

const tones = { dropped: 'bad', truncated: 'bad', rewritten: 'neutral' } as const

function LostTable({
  lost,
  database,
  onTarget,
}: {
  lost: FlashbackLost
  database: string
  onTarget: (change: Partial<Target>) => void
}) {
  const trpc = useTRPC()
  const { instanceId } = useInstance()
  const hint = useFlashBackHint()
  const [operationId, setOperationId] = useState<OperationId | null>(null)
  const [defined, setDefined] = useState(false)
  const [asking, setAsking] = useState(false)
  const beforeDrop = useMutation(
    trpc.flashback.beforeDrop.mutationOptions({
      onSuccess: (ordered: { operationId: OperationId }) => setOperationId(ordered.operationId),
    }),
  )
  const watched = useOrdered(operationId)
  const made = FlashbackMade.safeParse(watched?.operation?.result).data ?? null
  const state = watched?.operation?.state
  const running = operationId !== null && state !== 'succeeded' && state !== 'failed' && state !== 'cancelled'
  const moment = justBefore(lost.at)
  const flashBack = (place: Place = {}) => {
    setAsking(false)
    beforeDrop.mutate({
      instanceId,
      database,
      table: lost.table,
      tableName: lost.tableName,
      // exact, whatever else was committed in that microsecond
      lsn: lost.lsn,
      lost: lost.kind,
      ...place,
      idempotencyKey: newIdempotencyKey(),
    })
  }
  // where the schema is gone a person has to name another one
  const begin = () => (lost.kind === 'dropped' ? setAsking(true) : flashBack())
  return (
    <li className="flex flex-col gap-2.5 px-4 py-3">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <div className="flex min-w-0 flex-1 basis-72 flex-wrap items-baseline gap-x-3 gap-y-1 text-sm">
          <strong className="font-semibold [overflow-wrap:anywhere]">{lost.tableName}</strong>
          <Badge tone={tones[lost.kind]}>{lost.kind}</Badge>
          <span className="text-ink-muted">
            <Moment at={lost.at} /> (<Age at={lost.at} />)
          </span>
          <span className="text-ink-muted tabular-nums" title="Size of the kept files">
            {lost.sizeBytes === null ? '–' : formatBytes(lost.sizeBytes)}
          </span>
          {lost.restorableSince === null ? null : (
            <span className="text-ink-muted">
              back to <Moment at={lost.restorableSince} />
            </span>
          )}
        </div>
        <div className="flex flex-wrap gap-2">
          {lost.definition ? (
            <Button aria-expanded={defined} onClick={() => setDefined(!defined)}>
              Definition
            </Button>
          ) : null}
          {lost.kind === 'dropped' ? null : (
            <Button
              onClick={() => {
                onTarget({ database, table: lost.tableName, moment })
                window.scrollTo({ top: 0, behavior: 'smooth' })
              }}
            >
              <ScanSearch aria-hidden />
              Preview…
            </Button>
          )}
          <Button
            variant={lost.kind === 'rewritten' ? 'secondary' : 'primary'}
            disabled={hint !== null || running}
            busy={running || beforeDrop.isPending}
            title={hint ?? `Makes a table with its rows just before it was ${lost.kind}`}
            onClick={begin}
          >
            {running || beforeDrop.isPending ? null : <History aria-hidden />}
            {lost.kind === 'dropped' ? 'Flash back…' : 'Flash back'}
          </Button>
        </div>
      </div>
      {defined && lost.definition ? <Copyable text={lost.definition} what="definition" multiline /> : null}
      {beforeDrop.error ? <Refusal error={beforeDrop.error} /> : null}
      {asking ? (
        <GiveBackDialog lost={lost} onFlashBack={flashBack} onClose={() => setAsking(false)} />
      ) : null}
      {made && operationId && isGivenBack(made.resultName, lost.tableName) ? (
        <Alert
          tone={made.missing?.length ? 'warn' : 'good'}
          title={`${made.resultName} is back (${rowsInWords(made.rows)}, ${formatBytes(made.bytes)})`}
          actions={<OperationLink operationId={operationId} />}
        >
          <MissingPieces missing={made.missing} />
        </Alert>
      ) : made && operationId ? (
        <>
          <Alert
            tone="good"
            title={`${lost.tableName} as it was just before is in ${made.resultName} (${rowsInWords(made.rows)}, ${formatBytes(made.bytes)})`}
            actions={<OperationLink operationId={operationId} />}
          />
          <ResultActions
            result={{
              ...made,
              database,
              table: lost.kind === 'dropped' ? null : lost.table,
              tableName: lost.tableName,
            }}
          />
        </>
      ) : watched ? (
        <OperationProgress watched={watched} title={`Flashing back ${lost.tableName}`} onAgain={begin} />
      ) : null}
    </li>
  )
}
