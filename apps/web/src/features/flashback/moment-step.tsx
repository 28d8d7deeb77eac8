'use client'
import { Alert, Button, formatTime, useNow } from '@floe/ui'
import { useState } from 'react'
import { ActivityFault } from './activity-fault'
import { clockText } from './event-mark'
import { MomentField } from './moment-field'
import { MomentTimeline, type RatePoint } from './moment-timeline'
import { ToRestoreCard } from './restore-card'
import { SuggestedMoments } from './suggested-moments'
import { type EventGroup, justBefore, type Mark, suggestions } from './table-events'
import type { TableChoice } from './table-list'
import { reachOf, viewOn } from './timeline-view'
import type { useActivity } from './use-activity'
import { useRate } from './use-window'
import type { Stretch } from './window-scale'

/** The moment: suggested, pressed on the timeline, or typed. */
export function MomentStep({
  window,
  newest,
  ofStandby,
  points,
  rate,
  activity,
  database,
  table,
  moment,
  onMoment,
}: {
  window: Stretch
  /** The last moment that works; on a standby before now. */
  newest: number
  ofStandby: boolean
  points: readonly { number: number; at: number }[]
  rate: readonly RatePoint[]
  activity: ReturnType<typeof useActivity>
  database: string
  table: TableChoice
  moment: number | null
  onMoment: (at: number) => void
}) {
  const now = useNow() ?? window.to
  const [view, setView] = useState<Stretch | null>(null)
  const finer = useRate(view)
  const choose = (at: number) => {
    setView(viewOn(view, window, at))
    onMoment(at)
  }
  const offered = suggestions(activity.groups, table.oid, window)
  return (
    <div className="flex flex-col gap-3">
      <ActivityFault activity={activity} database={database} />
      <SuggestedMoments groups={offered} moment={moment} now={now} onMoment={choose} />
      <MomentTimeline
        window={window}
        view={view}
        onView={setView}
        rate={finer ?? rate}
        points={points}
        events={activity.groups}
        moment={moment}
        onMoment={onMoment}
        onMark={(mark) => choose(justBefore(worstOf(mark).from))}
      />
      <Coverage activity={activity} window={window} now={now} partitioned={table.kind === 'partitioned'} />
      <MomentField moment={moment} now={now} oldest={window.from} onMoment={choose} />
      {moment === null ? null : (
        <OutOfReach
          window={window}
          moment={moment}
          newest={ofStandby ? newest : Math.max(newest, now)}
          ofStandby={ofStandby}
          onMoment={choose}
        />
      )}
    </div>
  )
}

/** The event of a mark that somebody wants the time before: the first of those that took most away. */
const worstOf = (mark: Mark): EventGroup =>
  mark.groups.find((g) => g.loss === mark.loss) ?? (mark.groups[0] as EventGroup)

/** How much of the window was searched for events: where nothing is marked there may still be something. */
function Coverage({
  activity: { covered, loading, leastPartitionRows },
  window,
  now,
  partitioned,
}: {
  activity: ReturnType<typeof useActivity>
  window: Stretch
  now: number
  partitioned: boolean
}) {
  if (loading) return <p className="text-xs text-ink-muted">Reading WAL for large changes …</p>
  if (covered === null) return null
  const missed =
    partitioned && leastPartitionRows !== null
      ? `; in a partition, changes of fewer than ${leastPartitionRows.toLocaleString('en')} rows are not counted`
      : ''
  const source = `from the WAL; transactions of fewer than 1,000 rows are not marked${missed}`
  if (covered.complete && covered.from <= window.from + 1_000)
    return (
      <p className="text-xs text-ink-muted">
        Marks: large changes of this table in the whole window, {source}.
      </p>
    )
  return (
    <p className="text-xs text-ink-muted">
      Marks: large changes of this table from {clockText(covered.from, now)} to {clockText(covered.to, now)},{' '}
      {source}. {covered.complete ? 'No WAL from before is kept.' : 'More is being read.'}
    </p>
  )
}

/** Says that a moment is outside the window, and offers the nearest one that works. */
function OutOfReach({
  window,
  moment,
  newest,
  ofStandby,
  onMoment,
}: {
  window: Stretch
  moment: number
  newest: number
  ofStandby: boolean
  onMoment: (at: number) => void
}) {
  const reach = reachOf(window, moment, newest)
  if (reach.place === 'within') return null
  return (
    <Alert
      tone="warn"
      title={
        reach.place === 'before'
          ? `The window does not reach back to ${formatTime(moment, false)}`
          : ofStandby
            ? `This standby has not replayed WAL up to ${formatTime(moment, false)} yet`
            : `${formatTime(moment, false)} has not come yet`
      }
      actions={
        <>
          <Button size="small" onClick={() => onMoment(reach.nearest)}>
            Use {formatTime(reach.nearest, false)}
          </Button>
          {reach.place === 'before' ? <ToRestoreCard /> : null}
        </>
      }
    >
      {reach.place === 'before' ? (
        <>
          The oldest moment that works is {formatTime(reach.nearest)}. An older one needs a base backup and
          its WAL archive.
        </>
      ) : ofStandby ? (
        <>
          The newest moment that works here is {formatTime(reach.nearest)}, just before the last replayed
          commit.
        </>
      ) : (
        <>The newest moment that works is now.</>
      )}
    </Alert>
  )
}
