import type { ReactNode } from 'react'
import { classNames } from './class-names'

export type KeyValueItem = {
  label: ReactNode
  /** null and undefined are shown as a dash: not known is not nothing. */
  value: ReactNode
  /** Where the value comes from, as a tooltip. */
  source?: string
}

/** Facts as pairs, in as many columns as fit. */
export function KeyValue({ items, className }: { items: readonly KeyValueItem[]; className?: string }) {
  return (
    <dl
      className={classNames(
        'grid grid-cols-[repeat(auto-fill,minmax(11rem,1fr))] gap-x-6 gap-y-3',
        className,
      )}
    >
      {items.map((item, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the pairs of one place do not change order
        <div key={i} className="min-w-0" title={item.source}>
          <dt className="text-xs text-ink-muted">{item.label}</dt>
          <dd className="mt-0.5 text-sm break-words text-ink tabular-nums">
            {item.value === null || item.value === undefined || item.value === '' ? '–' : item.value}
          </dd>
        </div>
      ))}
    </dl>
  )
}
