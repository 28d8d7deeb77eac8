import { formatBytes, type LimitSum } from '@floe/domain'
import { Badge } from '@floe/ui'

/** What the limits of all instances of a host add up to, as items of a list. */
export function LimitSums({ sums }: { sums: readonly LimitSum[] }) {
  return sums.map((sum) => (
    <li key={sum.resource} className="flex flex-wrap items-center gap-2">
      <span>{sumWords(sum)}</span>
      {sum.over ? <Badge tone="warn">over-committed</Badge> : null}
    </li>
  ))
}

function sumWords({ resource, limited, size, unlimited }: LimitSum): string {
  const show = (value: number) =>
    resource === 'cpu' ? `${Math.round(value * 100) / 100} cores` : formatBytes(value)
  const without =
    unlimited === 0 ? '' : `; ${unlimited} ${unlimited === 1 ? 'has' : 'have'} none and may take all of it`
  return `${resource === 'cpu' ? 'CPU' : 'Memory'} limits of all instances on the host: ${show(limited)} of ${show(size)}${without}.`
}
