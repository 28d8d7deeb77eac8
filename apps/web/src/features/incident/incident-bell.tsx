'use client'
import { Age, Button, classNames, FaultAlert, Popover } from '@floe/ui'
import { Bell } from 'lucide-react'
import Link from 'next/link'
import { useState } from 'react'
import type { Incident } from '@/server/api'
import { faultOf } from '@/trpc/fault'
import { placesOf } from './incident-places'
import { SeverityBadge } from './severity-badge'
import { useOpenIncidents } from './use-open-incidents'

/** The open incidents: how many, and the newest of them. */
export function IncidentBell() {
  const query = useOpenIncidents()
  const [shown, setShown] = useState(false)
  const incidents = query.data?.incidents ?? []
  const open = query.data?.open
  const words = open
    ? open.total === 0
      ? 'No open incidents'
      : `${open.total} open ${open.total === 1 ? 'incident' : 'incidents'}${
          open.unacknowledged < open.total ? `, ${open.unacknowledged} not acknowledged` : ''
        }`
    : 'Incidents: not known'
  const close = () => setShown(false)
  return (
    <Popover
      label="Incidents"
      className="w-96"
      open={shown}
      onOpenChange={setShown}
      trigger={
        <Button variant="quiet" size="icon" aria-label={words} title={words} className="relative">
          <Bell aria-hidden />
          {open && open.total > 0 ? (
            <span
              aria-hidden
              data-testid="open-incidents"
              className={classNames(
                'absolute top-0.5 right-0.5 min-w-4 rounded-full px-1 text-center text-[10px] leading-4 font-semibold',
                // what everybody knows of does not call for anybody any more
                open.unacknowledged > 0
                  ? 'bg-bad-strong text-on-accent'
                  : 'border border-line-strong bg-sunken text-ink-muted',
              )}
            >
              {open.total > 99 ? '99+' : open.total}
            </span>
          ) : null}
        </Button>
      }
    >
      <h2 className="mb-2 text-sm font-semibold">{open ? words : 'Incidents'}</h2>
      {query.error ? (
        <FaultAlert fault={faultOf(query.error)} tone="warn" className="mb-2" />
      ) : incidents.length === 0 ? (
        <p className="text-sm text-ink-muted">{open ? 'No open incidents.' : 'Not loaded yet.'}</p>
      ) : null}
      {incidents.length > 0 ? (
        <ul className="flex max-h-96 flex-col gap-3 overflow-y-auto">
          {incidents.map((incident) => (
            <BellItem key={incident.incidentId} incident={incident} onLeave={close} />
          ))}
        </ul>
      ) : null}
      <p className="mt-3 border-t border-line pt-2 text-sm">
        <Link
          href="/incidents"
          onClick={close}
          className="font-medium text-accent underline-offset-2 hover:underline"
        >
          {open && open.total > incidents.length ? `All ${open.total} open incidents` : 'All incidents'}
        </Link>
      </p>
    </Popover>
  )
}

function BellItem({ incident, onLeave }: { incident: Incident; onLeave: () => void }) {
  const [place] = placesOf(incident)
  return (
    <li className="border-t border-line pt-2 first:border-0 first:pt-0">
      <div className="flex items-center justify-between gap-2">
        <SeverityBadge severity={incident.severity} />
        <Age at={incident.openedAt} className="text-xs text-ink-muted" />
      </div>
      <p className="mt-1 text-sm font-medium break-words">
        {place ? (
          <Link href={place.href} onClick={onLeave} className="hover:underline">
            {incident.title}
          </Link>
        ) : (
          incident.title
        )}
      </p>
      {incident.detail ? <p className="text-xs break-words text-ink-muted">{incident.detail}</p> : null}
      {incident.acknowledgedByName ? (
        <p className="text-xs break-words text-ink-muted">acknowledged by {incident.acknowledgedByName}</p>
      ) : null}
    </li>
  )
}
