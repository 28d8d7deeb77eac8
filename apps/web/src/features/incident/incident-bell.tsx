'use client'
import { Age, Badge, Button, Popover } from '@floe/ui'
import { useQuery } from '@tanstack/react-query'
import { Bell } from 'lucide-react'
import Link from 'next/link'
import { useTRPC } from '@/trpc/client'
import { type Incident, incidentHref } from './incident-href'

/** The open incidents: how many, and what each of them is. */
export function IncidentBell() {
  const trpc = useTRPC()
  const query = useQuery(trpc.incident.list.queryOptions({}, { refetchInterval: 10_000 }))
  const incidents = query.data?.incidents ?? []
  const known = query.data !== undefined
  const words = known
    ? incidents.length === 0
      ? 'No open incidents'
      : `${incidents.length} open ${incidents.length === 1 ? 'incident' : 'incidents'}`
    : 'Incidents: not known'
  return (
    <Popover
      label="Incidents"
      className="w-96"
      trigger={
        <Button variant="quiet" size="icon" aria-label={words} title={words} className="relative">
          <Bell aria-hidden />
          {incidents.length > 0 ? (
            <span
              aria-hidden
              className="absolute top-0.5 right-0.5 min-w-4 rounded-full bg-bad-strong px-1 text-center text-[10px] leading-4 font-semibold text-on-accent"
            >
              {incidents.length}
            </span>
          ) : null}
        </Button>
      }
    >
      <h2 className="mb-2 text-sm font-semibold">Incidents</h2>
      {incidents.length === 0 ? (
        <p className="text-sm text-ink-muted">
          {known ? 'Nothing needs a person now.' : 'The console has not told yet.'}
        </p>
      ) : (
        <ul className="flex max-h-96 flex-col gap-3 overflow-y-auto">
          {incidents.map((incident) => (
            <IncidentItem key={incident.incidentId} incident={incident} />
          ))}
        </ul>
      )}
      <p className="mt-3 border-t border-line pt-2 text-sm">
        <Link href="/incidents" className="font-medium text-accent hover:underline">
          All incidents
        </Link>
      </p>
    </Popover>
  )
}

function IncidentItem({ incident }: { incident: Incident }) {
  const href = incidentHref(incident)
  return (
    <li className="border-t border-line pt-2 first:border-0 first:pt-0">
      <div className="flex items-center justify-between gap-2">
        <Badge tone={incident.severity === 'warning' ? 'warn' : 'bad'}>{incident.severity}</Badge>
        <Age at={incident.openedAt} className="text-xs text-ink-muted" />
      </div>
      <p className="mt-1 text-sm font-medium break-words">
        {href ? (
          <Link href={href} className="hover:underline">
            {incident.title}
          </Link>
        ) : (
          incident.title
        )}
      </p>
      {incident.detail ? <p className="text-xs break-words text-ink-muted">{incident.detail}</p> : null}
      {incident.hint ? <p className="text-xs break-words text-ink-muted">Hint: {incident.hint}</p> : null}
    </li>
  )
}
