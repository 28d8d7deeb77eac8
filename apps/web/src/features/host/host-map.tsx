'use client'
import {
  formatDuration,
  formatUse,
  hostResourceRecord,
  limitWords,
  type ResourceMap,
  scaleOf,
} from '@floe/domain'
import {
  Alert,
  Card,
  classNames,
  EmptyState,
  FaultAlert,
  SkeletonRows,
  StateBadge,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useQuery } from '@tanstack/react-query'
import { Gauge } from 'lucide-react'
import Link from 'next/link'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { LimitSums } from '../limit/limit-sums'

type Told = RouterOutputs['host']['map']
type Host = RouterOutputs['host']['show']['host']

/** Of instances by their place in the list; those after the fifth share the last one. */
const colors = ['bg-series-1', 'bg-series-2', 'bg-series-3', 'bg-series-4', 'bg-series-5', 'bg-series-6']
const colorOf = (i: number) => colors[Math.min(i, colors.length - 1)]
const OTHERS = 'bg-line-strong'
const LEFT = 'bg-sunken'

/** A DBA’s map of the machine: who uses how much of it now, what is left, and what hurts whom. */
export function HostMapCard({ host, ageMs }: { host: Host; ageMs: number | null }) {
  const trpc = useTRPC()
  const query = useQuery(
    trpc.host.map.queryOptions({ hostId: host.hostId }, { refetchInterval: ageMs === null ? 2_000 : 10_000 }),
  )
  const { data } = query
  return (
    <Card
      title="Who uses what"
      description="CPU, memory and disk by instance, as of the last seconds. The parts add up to all there is."
      bodyClassName={data && data.resources.length > 0 ? 'p-0' : undefined}
    >
      {data ? (
        data.resources.length === 0 ? (
          <EmptyState icon={Gauge} title="Nothing is known yet">
            Its agent has not answered yet. What the machine has and uses is shown once it does.
          </EmptyState>
        ) : (
          <HostMap told={data} host={host.name} ageMs={ageMs} />
        )
      ) : query.error ? (
        <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} />
      ) : (
        <SkeletonRows label="Loading who uses what" />
      )}
    </Card>
  )
}

function HostMap({ told, host, ageMs }: { told: Told; host: string; ageMs: number | null }) {
  const { resources, instances, sums, diskUse, pressures } = told
  const unknown = Math.max(0, ...resources.map((r) => r.unknown))
  const others = unknown === 0 ? 'Everything else' : 'Everything else, and what is not known'
  return (
    <div className={classNames(ageMs !== null && 'grayscale [&_td]:text-ink-muted')}>
      <div className="flex flex-col gap-3 px-4 py-4">
        {ageMs === null ? null : (
          <p className="text-sm text-ink-muted">
            The machine as last seen {formatDuration(ageMs)} ago; what its instances use is not known now.
          </p>
        )}
        {pressures.map(({ title, detail, hint }) => (
          <Alert key={title} tone="warn" title={title}>
            <p>{detail}</p>
            {hint === null ? null : <p className="mt-1">{hint}</p>}
          </Alert>
        ))}
        {resources.map((r) => (
          <Bar key={r.resource} map={r} names={instances.map((i) => i.name)} />
        ))}
      </div>
      <div className="border-t border-line">
        <Table label={`Who uses what of ${host}`}>
          <TableHead>
            <tr>
              <TableHeader>Instance</TableHeader>
              <TableHeader>State</TableHeader>
              {resources.map((r) => (
                <TableHeader key={r.resource} number title={hostResourceRecord(r.resource).source}>
                  {hostResourceRecord(r.resource).title}
                </TableHeader>
              ))}
            </tr>
          </TableHead>
          <TableBody>
            {instances.map((instance, i) => (
              <TableRow key={instance.instanceId}>
                <TableCell>
                  <Swatch className={colorOf(i)} />
                  <Link
                    href={`/instances/${instance.name}`}
                    className="font-medium text-ink hover:text-accent hover:underline"
                  >
                    {instance.name}
                  </Link>
                </TableCell>
                <TableCell>
                  <StateBadge state={instance.state} of="instance" />
                </TableCell>
                {resources.map((r) => (
                  <TableCell key={r.resource} number>
                    {formatUse(r.resource, r.used[i] ?? null)}
                    <Limit of={r} limits={instance.limits} />
                  </TableCell>
                ))}
              </TableRow>
            ))}
            <Total name={others} color={OTHERS} maps={resources} value={(r) => r.others} />
            <Total name="Left" color={LEFT} maps={resources} value={(r) => r.left} />
            <Total name="All there is" maps={resources} value={(r) => r.size} />
          </TableBody>
        </Table>
      </div>
      <ul className="flex flex-col gap-1 border-t border-line px-4 py-3 text-sm text-ink-muted">
        <LimitSums sums={sums} />
        {diskUse.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
        <li>
          Space is that of databases and WAL, counted once a minute. What a disk can read and write in a
          second is not known, so nothing is said to be left of it.
        </li>
      </ul>
    </div>
  )
}

function Swatch({ className }: { className: string | undefined }) {
  return (
    <span
      aria-hidden
      className={classNames('mr-2 inline-block size-2.5 rounded-xs border border-line-strong', className)}
    />
  )
}

function Limit({ of, limits }: { of: ResourceMap; limits: Told['instances'][number]['limits'] }) {
  const words = limitWords(of.resource, limits)
  return words === null ? null : <span className="block text-xs text-ink-muted">{words}</span>
}

/** A row that is of no instance. */
function Total({
  name,
  color,
  maps,
  value,
}: {
  name: string
  color?: string
  maps: readonly ResourceMap[]
  value: (map: ResourceMap) => number | null
}) {
  return (
    <TableRow className="bg-sunken/40">
      <TableCell className="min-w-40 text-ink-muted">
        {color ? <Swatch className={color} /> : null}
        {name}
      </TableCell>
      <TableCell />
      {maps.map((r) => (
        <TableCell key={r.resource} number>
          {formatUse(r.resource, value(r))}
        </TableCell>
      ))}
    </TableRow>
  )
}

function Bar({ map, names }: { map: ResourceMap; names: readonly string[] }) {
  const { resource, of, size, used, others, left } = map
  const scale = scaleOf(map)
  const { title } = hostResourceRecord(resource)
  const parts = [
    ...used.map((value, i) => ({ key: names[i] ?? '', value, className: colorOf(i) })),
    { key: 'everything else', value: others, className: OTHERS },
  ].filter((part) => part.value !== null && part.value > 0)
  const sum = parts.reduce((total, part) => total + (part.value ?? 0), 0)
  const inUse = others === null ? null : sum
  const words =
    inUse === null
      ? 'not reported by its agent'
      : size === null
        ? `${formatUse(resource, inUse)} in all`
        : `${formatUse(resource, inUse)} of ${formatUse(resource, size)} in use`
  return (
    <div className="grid grid-cols-1 items-center gap-x-4 gap-y-1 sm:grid-cols-[9rem_1fr_14rem]">
      <span className="text-sm font-medium text-ink">
        {title} {of === null ? null : <span className="font-mono text-xs text-ink-muted">{of}</span>}
      </span>
      <div
        role="img"
        data-resource={resource}
        aria-label={`${title}: ${[
          ...parts.map((part) => `${part.key} ${formatUse(resource, part.value)}`),
          ...(left === null ? [] : [`left ${formatUse(resource, left)}`]),
        ].join(', ')}`}
        className={classNames('flex h-3 w-full overflow-hidden rounded-xs border border-line-strong', LEFT)}
      >
        {scale > 0
          ? parts.map((part) => (
              <span
                key={part.key}
                title={`${part.key}: ${formatUse(resource, part.value)}`}
                className={classNames('h-full border-r border-surface last:border-r-0', part.className)}
                style={{ width: `${((part.value ?? 0) / scale) * 100}%` }}
              />
            ))
          : null}
      </div>
      <span className="text-xs text-ink-muted tabular-nums sm:text-right">{words}</span>
    </div>
  )
}
