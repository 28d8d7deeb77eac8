import { type LimitSum, limitSumWords } from '@floe/domain'
import { Badge } from '@floe/ui'

/** What the limits of all instances of a host add up to, as items of a list. */
export function LimitSums({ sums }: { sums: readonly LimitSum[] }) {
  return sums.map((sum) => (
    <li key={sum.resource} className="flex flex-wrap items-center gap-2">
      <span>
        {sum.resource === 'cpu' ? 'CPU' : 'Memory'} limits of all instances on the host: {limitSumWords(sum)}.
      </span>
      {sum.over ? <Badge tone="warn">over-committed</Badge> : null}
    </li>
  ))
}
