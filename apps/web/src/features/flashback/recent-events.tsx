'use client'
import { Age, Button } from '@floe/ui'
import { useState } from 'react'
import { clockText, LossIcon } from './event-mark'
import { type EventGroup, groupInWords } from './table-events'

const SHOWN = 3

/**
 * What took rows or values away lately, in any table of the database, newest first: one press chooses the table and the moment
 * before it.
 */
export function RecentEvents({
  groups,
  now,
  onChoose,
}: {
  groups: readonly EventGroup[]
  now: number
  onChoose: (group: EventGroup) => void
}) {
  const [all, setAll] = useState(false)
  const losses = groups
    // a table that is there may have lost a partition
    .filter(
      (g) => g.loss !== 'none' && (g.verb !== 'dropped' || g.partitions !== null) && g.tableName !== null,
    )
    .sort((a, b) => b.from - a.from)
  if (losses.length === 0) return null
  return (
    <section aria-labelledby="recent-events">
      <div className="mb-1.5 flex flex-wrap items-baseline gap-x-2">
        <h4 id="recent-events" className="text-sm font-medium">
          Recently lost rows
        </h4>
        <p className="text-xs text-ink-muted">Choose one to take its table and the moment just before.</p>
      </div>
      <ul className="flex flex-col gap-1.5">
        {losses.slice(0, all ? undefined : SHOWN).map((group) => (
          <li key={`${group.table} ${group.from} ${group.verb}`}>
            <button
              type="button"
              onClick={() => onChoose(group)}
              className="flex w-full flex-wrap items-center gap-x-2.5 gap-y-1 rounded-md border border-line-strong bg-surface px-3 py-2 text-left text-sm hover:border-accent hover:bg-hover"
            >
              <LossIcon loss={group.loss} />
              <strong className="min-w-0 font-medium [overflow-wrap:anywhere]">{group.tableName}</strong>
              <span className="min-w-0 flex-1 basis-48 text-ink-muted">
                {groupInWords(group)} at <span className="tabular-nums">{clockText(group.from, now)}</span>
              </span>
              <Age at={group.from} className="text-xs text-ink-muted" />
            </button>
          </li>
        ))}
      </ul>
      {losses.length > SHOWN ? (
        <Button variant="link" size="small" className="mt-1.5" onClick={() => setAll(!all)}>
          {all ? 'Show fewer' : `Show ${losses.length - SHOWN} more`}
        </Button>
      ) : null}
    </section>
  )
}
