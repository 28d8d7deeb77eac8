import type { FlashbackCounts } from '@floe/domain'
import { Age, classNames } from '@floe/ui'
import { rowsInWords } from './table-events'

const number = new Intl.NumberFormat('en')

/** How many rows there were and are, and what became of them, each with a bar on one scale. */
export function ComparisonCounts({
  comparison,
  then,
  at,
  on,
}: {
  comparison: FlashbackCounts
  /** The moment; null where it is that of a result. */
  then: string | null
  /** When they were compared. */
  at: number | null
  /** The member that compared them. */
  on: string | null
}) {
  const { rowsThen, rowsNow, same, added, removed, changed, keyColumns } = comparison
  // two scales: a few rows that differ would vanish beside millions that do not
  const all = Math.max(1, rowsThen, rowsNow)
  const differing = Math.max(1, removed, changed, added)
  const lines = [
    {
      label: then === null ? 'Rows in the result' : `Rows at ${then}`,
      rows: rowsThen,
      of: all,
      fill: 'bg-accent-strong/70',
    },
    { label: 'Rows now', rows: rowsNow, of: all, fill: 'bg-accent-strong/70' },
    { label: 'Unchanged', rows: same, of: all, fill: 'bg-ink-faint/50' },
    { label: 'Removed since', rows: removed, of: differing, fill: 'bg-bad' },
    ...(keyColumns ? [{ label: 'Changed since', rows: changed, of: differing, fill: 'bg-band-write' }] : []),
    { label: 'Added since', rows: added, of: differing, fill: 'bg-good' },
  ]
  return (
    <div>
      <dl className="grid grid-cols-[auto_auto_1fr] items-center gap-x-3 gap-y-1.5 text-sm">
        {lines.map(({ label, rows, of, fill }, i) => (
          <div key={label} className={classNames('contents', i === 3 && '[&>*]:mt-2')}>
            <dt className="text-ink-muted">{label}</dt>
            <dd className="text-right font-medium tabular-nums">{number.format(rows)}</dd>
            <span aria-hidden className="h-2 overflow-hidden rounded-full bg-sunken">
              <span
                className={classNames('block h-full rounded-full', rows > 0 && 'min-w-1', fill)}
                style={{ width: `${(rows / of) * 100}%` }}
              />
            </span>
          </div>
        ))}
      </dl>
      <p className="mt-2 text-xs text-ink-muted">
        {keyColumns
          ? `Rows are matched by ${keyColumns.join(', ')}.`
          : 'The table has no key that names a row, so whole rows are compared: a changed row counts as one removed and one added.'}{' '}
        Compared <Age at={at} />
        {on === null ? '' : ` on ${on}`}.
      </p>
    </div>
  )
}

/** What a comparison comes to, in a sentence. */
export function comparisonInWords({ removed, changed, added }: FlashbackCounts): string {
  if (removed + changed + added === 0) return 'The table has the same rows now.'
  const parts = [
    removed > 0 ? `${rowsInWords(removed)} removed` : null,
    changed > 0 ? `${rowsInWords(changed)} changed` : null,
    added > 0 ? `${rowsInWords(added)} added` : null,
  ].filter((part) => part !== null)
  return `Since then: ${parts.join(', ')}.`
}
