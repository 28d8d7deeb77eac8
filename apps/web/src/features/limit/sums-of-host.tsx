'use client'
import { type HostId, noLimits, withLimits } from '@floe/domain'
import { useQuery } from '@tanstack/react-query'
import { useTRPC } from '@/trpc/client'
import { LimitSums } from './limit-sums'
import { sumsWith } from './sums-with'
import { type LimitTexts, typedLimits } from './typed-limits'

/** What the limits of a host’s instances add up to with those that are being typed. A field that is wrong counts as none. */
export function SumsOfHost({ hostId, texts }: { hostId: HostId; texts: LimitTexts }) {
  const trpc = useTRPC()
  const { data } = useQuery(trpc.host.map.queryOptions({ hostId }))
  const sums = data ? sumsWith(data, withLimits(noLimits, typedLimits(texts, noLimits).changes)) : []
  return sums.length === 0 ? null : (
    <div className="text-xs text-ink-muted">
      <p>Together with the instances that are there:</p>
      <ul className="mt-1 flex flex-col gap-1">
        <LimitSums sums={sums} />
      </ul>
    </div>
  )
}
