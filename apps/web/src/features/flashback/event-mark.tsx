import { formatTime } from '@floe/ui'
import { Eraser, type LucideIcon, PencilLine, Wrench } from 'lucide-react'
import type { Loss } from './table-events'

/** How an event is drawn, by what it did to the rows that were there; the words beside it say the same. */
export const lossLooks: Record<Loss, { icon: LucideIcon; words: string; box: string }> = {
  rows: { icon: Eraser, words: 'rows removed', box: 'border-bad/45 bg-bad-soft text-bad' },
  values: { icon: PencilLine, words: 'rows updated', box: 'border-warn/50 bg-warn-soft text-warn' },
  none: { icon: Wrench, words: 'other change', box: 'border-line-strong bg-raised text-ink-muted' },
}

/** A small square with the looks of an event. */
export function LossIcon({ loss }: { loss: Loss }) {
  const { icon: Icon, box } = lossLooks[loss]
  return (
    <span aria-hidden className={`flex size-5 shrink-0 items-center justify-center rounded-sm border ${box}`}>
      <Icon className="size-3" />
    </span>
  )
}

/** The time of day, with the date where it is another day than `now`. */
export function clockText(at: number, now: number): string {
  const text = formatTime(at, false)
  return text.slice(0, 10) === formatTime(now, false).slice(0, 10) ? text.slice(11) : text
}
