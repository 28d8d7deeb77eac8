'use client'
import {
  Badge,
  Button,
  Card,
  EmptyState,
  Input,
  Moment,
  Select,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useInfiniteQuery } from '@tanstack/react-query'
import { ScrollText } from 'lucide-react'
import { useSearchParams } from 'next/navigation'
import { type FormEvent, useId } from 'react'
import { type AuditEvent, AuditOutcome } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { keepInAddress } from '../console/address-choice'
import { PagedList } from '../console/paged-list'

const filters = [
  { name: 'actor', label: 'User', placeholder: 'name or id' },
  { name: 'action', label: 'Action', placeholder: 'instance or instance.stop' },
  { name: 'object', label: 'Object', placeholder: 'name or id' },
] as const

/** Audit rows, newest first; the filters are kept in the address. */
export function AuditList() {
  const trpc = useTRPC()
  const params = useSearchParams()
  const outcome = AuditOutcome.safeParse(params.get('outcome'))
  const wanted = (name: string) => params.get(name)?.trim().slice(0, 200) || undefined
  const filter = {
    actor: wanted('actor'),
    action: wanted('action'),
    object: wanted('object'),
    outcome: outcome.success ? outcome.data : undefined,
  }
  const filtered = Object.values(filter).some((value) => value !== undefined)
  const query = useInfiniteQuery(
    trpc.audit.list.infiniteQueryOptions(
      { ...filter, limit: 50 },
      { getNextPageParam: (page) => page.nextCursor ?? undefined, refetchInterval: 10_000 },
    ),
  )
  const events = query.data?.pages.flatMap((page) => page.events) ?? []
  return (
    <Card title="Events" bodyClassName="p-0">
      <Filters key={params.toString()} values={filter} />
      <PagedList
        query={query}
        noun="events"
        rows={events.length}
        empty={
          <EmptyState icon={ScrollText} title={filtered ? 'No event matches the filters' : 'No events yet'}>
            Each change and each refused request leaves an event with its user, time and address.
          </EmptyState>
        }
      >
        <Table label="Events">
          <TableHead>
            <tr>
              <TableHeader>Action</TableHeader>
              <TableHeader>Object</TableHeader>
              <TableHeader>Outcome</TableHeader>
              <TableHeader>User</TableHeader>
              <TableHeader>Time</TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {events.map((event) => (
              <EventRow key={event.eventId} event={event} />
            ))}
          </TableBody>
        </Table>
      </PagedList>
    </Card>
  )
}

function Filters({ values }: { values: Record<string, string | undefined> }) {
  const id = useId()
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const next = new URLSearchParams()
    for (const [name, value] of new FormData(event.currentTarget))
      if (typeof value === 'string' && value.trim()) next.set(name, value.trim())
    keepInAddress(next)
  }
  return (
    <form
      aria-label="Filters"
      onSubmit={submit}
      className="grid grid-cols-1 items-end gap-3 border-b border-line px-4 py-3 sm:grid-cols-2 lg:grid-cols-[1fr_1fr_1fr_9rem_auto]"
    >
      {filters.map(({ name, label, placeholder }) => (
        <div key={name} className="flex min-w-0 flex-col gap-1">
          <label htmlFor={`${id}-${name}`} className="text-xs text-ink-muted">
            {label}
          </label>
          <Input
            id={`${id}-${name}`}
            name={name}
            defaultValue={values[name] ?? ''}
            placeholder={placeholder}
            maxLength={200}
          />
        </div>
      ))}
      <div className="flex min-w-0 flex-col gap-1">
        <label htmlFor={`${id}-outcome`} className="text-xs text-ink-muted">
          Outcome
        </label>
        <Select id={`${id}-outcome`} name="outcome" defaultValue={values.outcome ?? ''}>
          <option value="">all</option>
          {AuditOutcome.options.map((option) => (
            <option key={option} value={option}>
              {option}
            </option>
          ))}
        </Select>
      </div>
      <Button type="submit">Filter</Button>
    </form>
  )
}

function EventRow({ event }: { event: AuditEvent }) {
  const { name: _, ...detail } = event.detail ?? {}
  const more = Object.entries(detail)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
  const object = event.objectName ?? event.objectId
  return (
    <TableRow>
      <TableCell>
        <span className="font-mono text-xs text-ink">{event.action}</span>
        {more ? (
          <p className="max-w-64 truncate text-xs text-ink-muted" title={more}>
            {more}
          </p>
        ) : null}
      </TableCell>
      <TableCell
        className="max-w-40 truncate"
        title={object === null ? undefined : `${event.objectKind ?? ''} ${object}`}
      >
        {object ?? '–'}
      </TableCell>
      <TableCell>
        <Badge tone={event.outcome === 'denied' ? 'bad' : 'good'}>{event.outcome}</Badge>
      </TableCell>
      <TableCell>
        <span className="block max-w-44 truncate" title={`${event.actorName} (${event.actor})`}>
          {event.actorName}
        </span>
        {event.ipAddress ? <span className="text-xs text-ink-muted">{event.ipAddress}</span> : null}
      </TableCell>
      <TableCell className="whitespace-nowrap">
        <Moment at={event.at} />
      </TableCell>
    </TableRow>
  )
}
