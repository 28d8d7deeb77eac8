'use client'
import { Alert, Button, Card, useNow } from '@floe/ui'
import Link from 'next/link'
import type { ReactNode, Ref } from 'react'
import { useCluster } from '../cluster/use-cluster'
import { useInstance } from '../instance/instance-context'
import type { WatchedOperation } from '../operation/use-operation'
import { ActivityFault } from './activity-fault'
import { FlashBackBar } from './flash-back-bar'
import { MomentStep } from './moment-step'
import { PreviewPanel } from './preview'
import { RecentEvents } from './recent-events'
import type { Results } from './result-list'
import { justBefore } from './table-events'
import { tableNameOf } from './table-list'
import { TableStep } from './table-step'
import { reachOf } from './timeline-view'
import { useActivity } from './use-activity'
import { usePreview } from './use-preview'
import { useTable } from './use-tables'
import type { Target } from './use-target'
import type { useWindow } from './use-window'

/** From a table and a moment to its rows: choose, look, flash back. */
export function FlashbackCard({
  target,
  database,
  window,
  results,
  flashed,
  onTarget,
}: {
  target: Target
  database: string | null
  window: ReturnType<typeof useWindow>
  results: Results
  /** The flashback that the address names. */
  flashed: WatchedOperation | null
  onTarget: (change: Partial<Target>) => void
}) {
  const now = useNow()
  const chosen = useTable(database, target.table)
  const table = chosen.table ?? null
  const activity = useActivity(database, table?.oid ?? null)
  const { stretch, newest } = window
  const ready =
    table !== null && table.whyNot === null && stretch !== null && now !== null && database !== null
  const reached =
    ready && target.moment !== null && reachOf(stretch, target.moment, newest ?? now).place === 'within'
      ? target.moment
      : null
  const preview = usePreview({ ...target, database }, table, reached, onTarget)
  return (
    <Card aria-label="Flash back a table" title="Flash back a table" bodyClassName="p-0">
      <Step number={1} title="Table">
        <TableStep target={{ ...target, database }} chosen={chosen} results={results} onTarget={onTarget}>
          {database === null ? null : <ActivityFault activity={activity} database={database} />}
          <RecentEvents
            groups={target.table === null ? activity.groups : []}
            now={now ?? 0}
            onChoose={(group) =>
              onTarget({ database, table: group.tableName, moment: justBefore(group.from) })
            }
          />
        </TableStep>
      </Step>
      {ready ? (
        <Step number={2} title="Moment">
          <MomentStep
            window={stretch}
            newest={newest ?? now}
            ofStandby={window.ofStandby}
            points={window.read?.points ?? []}
            rate={window.rate}
            activity={activity}
            database={database}
            table={table}
            moment={target.moment}
            onMoment={(moment) => onTarget({ moment })}
          />
        </Step>
      ) : null}
      {ready && reached !== null ? (
        <>
          {(preview.readers.length > 1 && target.flashback === null) ||
          target.preview !== null ||
          preview.error ? (
            <Step number={3} title="Preview" reference={preview.place}>
              <PreviewPanel
                preview={preview}
                operationId={target.preview}
                flashed={target.flashback !== null}
                moment={reached}
                now={now}
              />
            </Step>
          ) : null}
          <FlashBackBar
            // an order of another table or moment is not this one
            key={`${tableNameOf(table)} ${reached}`}
            target={target}
            table={table}
            moment={reached}
            database={database}
            results={results}
            watched={flashed}
            preview={preview}
            now={now}
            onTarget={onTarget}
          />
        </>
      ) : null}
      <OnStandby />
    </Card>
  )
}

function Step({
  number,
  title,
  reference,
  children,
}: {
  number: number
  title: string
  reference?: Ref<HTMLElement>
  children: ReactNode
}) {
  return (
    <section
      ref={reference}
      aria-labelledby={`flashback-step-${number}`}
      className="scroll-mt-14 scroll-mb-36 md:scroll-mb-20 border-t border-line px-4 py-3.5 first:border-0"
    >
      <h3 id={`flashback-step-${number}`} className="mb-2.5 flex items-center gap-2 text-sm font-semibold">
        <span
          aria-hidden
          className="flex size-5 items-center justify-center rounded-full bg-accent-soft text-xs text-accent tabular-nums"
        >
          {number}
        </span>
        {title}
      </h3>
      {children}
    </section>
  )
}

/** A standby serves for looking only; the rest is done on the primary, from its own window. */
function OnStandby() {
  const { cluster } = useInstance()
  const standby = cluster.memberRole === 'standby'
  const { data } = useCluster({ enabled: standby, everyMs: 10_000 })
  const primary = data?.cluster.members.find((m) => m.memberRole === 'primary')
  if (!standby) return null
  const query = typeof window === 'undefined' ? '' : window.location.search
  return (
    <div className="border-t border-line p-4">
      <Alert
        title="This standby serves previews only"
        actions={
          primary ? (
            <Button asChild size="small">
              <Link href={`/instances/${primary.name}/flashback${query}`}>
                Open {primary.name}, the primary
              </Link>
            </Button>
          ) : undefined
        }
      >
        It is read-only: a flashback, a merge and a swap are done on the primary.
      </Alert>
    </div>
  )
}
