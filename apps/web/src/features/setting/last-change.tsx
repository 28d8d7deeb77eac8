'use client'
import { formatBytes, formatDuration, type InstanceId } from '@floe/domain'
import { Age, consoleTime } from '@floe/ui'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useTRPC } from '@/trpc/client'
import {
  comparedMs,
  comparedTimes,
  type RequestKind,
  type RequestSize,
  requestSize,
} from './last-change-of-size'
import { OldToNew } from './old-to-new'

/** Samples of one second for as long as they are kept. */
const maxPoints = (2 * comparedMs) / 1_000

/** What the newest change of a bulk size did: the average request before and after it, from stored samples. */
export function LastChange({
  instanceId,
  name,
  kind,
}: {
  instanceId: InstanceId
  name: string
  kind: RequestKind
}) {
  const trpc = useTRPC()
  const history = useQuery(
    trpc.setting.history.queryOptions(
      { scope: { instanceId }, name, limit: 20 },
      { refetchInterval: 10_000 },
    ),
  )
  const changes = history.data?.changes
  const times = comparedTimes(changes ?? [])
  const samples = useQuery(
    trpc.telemetry.history.queryOptions(
      {
        instanceId,
        metrics: [kind.bytes, kind.requests],
        from: times?.before.from ?? 0,
        to: times?.after.to ?? 1,
        maxPoints,
      },
      {
        enabled: times !== null,
        placeholderData: keepPreviousData,
        // the time after the change goes on
        refetchInterval: () => (times && consoleTime() < times.after.to + 60_000 ? 10_000 : false),
      },
    ),
  )
  const last = changes?.find((c) => c.at === times?.at)
  if (!times || !last) return null
  const size = (side: 'before' | 'after'): RequestSize | null =>
    samples.data
      ? requestSize(samples.data, kind, times[side])
      : samples.error
        ? { known: false, why: 'unmeasured' }
        : null
  return (
    <section aria-label={`Last change of ${name}`} className="text-xs text-ink-muted lg:col-span-2">
      <p className="flex flex-wrap items-center gap-x-1.5">
        Last change:{' '}
        <OldToNew from={last.oldValue ?? 'default'} to={last.newValue ?? 'default'} arrow="became" />
        <Age at={last.at} />
      </p>
      <dl className="mt-1 flex flex-wrap gap-x-6 gap-y-1">
        <Side label="Before" kind={kind} size={size('before')} />
        <Side label="After" kind={kind} size={size('after')} />
      </dl>
    </section>
  )
}

function Side({ label, kind, size }: { label: string; kind: RequestKind; size: RequestSize | null }) {
  return (
    <div className="flex flex-wrap gap-x-1.5">
      <dt>{label}:</dt>
      <dd>
        {size === null ? (
          '…'
        ) : size.known ? (
          <>
            <span className="font-mono text-ink">{formatBytes(size.bytesPerRequest)}</span> per {kind.request}{' '}
            ({size.requests.toLocaleString('en')} in {formatDuration(size.measuredMs)})
          </>
        ) : size.why === 'none' ? (
          `no ${kind.request}`
        ) : (
          'unknown, no sample of that time'
        )}
      </dd>
    </div>
  )
}
