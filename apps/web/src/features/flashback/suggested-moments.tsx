'use client'
import { Age, Button, classNames } from '@floe/ui'
import { useState } from 'react'
import { clockText, LossIcon } from './event-mark'
import { type EventGroup, groupInWords, justBefore } from './table-events'

const SHOWN = 3

/** Moments that somebody probably wants: just before what WAL has of the table, what took rows away first. */
export function SuggestedMoments({
  groups,
  moment,
  now,
  onMoment,
}: {
  groups: readonly EventGroup[]
  moment: number | null
  now: number
  onMoment: (at: number) => void
}) {
  const [all, setAll] = useState(false)
  if (groups.length === 0) return null
  const shown = all ? groups : groups.slice(0, SHOWN)
  return (
    <div>
      <ul aria-label="Suggested moments" className="flex flex-col gap-1.5">
        {shown.map((group) => {
          const at = justBefore(group.from)
          const chosen = moment === at
          return (
            <li key={`${group.from} ${group.verb}`}>
              <button
                type="button"
                aria-pressed={chosen}
                onClick={() => onMoment(at)}
                className={classNames(
                  'flex w-full flex-wrap items-center gap-x-2.5 gap-y-1 rounded-md border px-3 py-2 text-left text-sm',
                  chosen
                    ? 'border-accent bg-accent-soft'
                    : 'border-line-strong bg-surface hover:border-accent hover:bg-hover',
                )}
              >
                <LossIcon loss={group.loss} />
                <span className="min-w-0 flex-1 basis-52">
                  Just before <strong className="font-medium">{groupInWords(group)}</strong> at{' '}
                  <span className="tabular-nums">{clockText(group.from, now)}</span>
                </span>
                <Age at={group.from} className="text-xs text-ink-muted" />
              </button>
            </li>
          )
        })}
      </ul>
      {groups.length > SHOWN ? (
        <Button variant="link" size="small" className="mt-1.5" onClick={() => setAll(!all)}>
          {all ? 'Show fewer' : `Show ${groups.length - SHOWN} more`}
        </Button>
      ) : null}
    </div>
  )
}
