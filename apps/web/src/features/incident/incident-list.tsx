'use client'
import { formatDuration, IncidentSeverity, IncidentState } from '@floe/domain'
import { Age, Badge, Button, Card, EmptyState, Moment, noteConsoleTime, useToast } from '@floe/ui'
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { BellOff, Check } from 'lucide-react'
import Link from 'next/link'
import { useSearchParams } from 'next/navigation'
import { type ReactNode, useEffect } from 'react'
import type { Incident } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { AddressChoice } from '../console/address-choice'
import { PagedList } from '../console/paged-list'
import { AcceptRestored, isRestored } from './accept-restored'
import { actionOf, IncidentPlaces } from './incident-places'
import { SeverityBadge } from './severity-badge'

/** Incidents, open ones first, each newest first; what is chosen to be shown is kept in the address. */
export function IncidentList() {
  const trpc = useTRPC()
  const params = useSearchParams()
  const wantedState = IncidentState.safeParse(params.get('state'))
  const wantedSeverity = IncidentSeverity.safeParse(params.get('severity'))
  const state = wantedState.success ? wantedState.data : 'all'
  const severity = wantedSeverity.success ? wantedSeverity.data : undefined
  const query = useInfiniteQuery(
    trpc.incident.list.infiniteQueryOptions(
      { state, severity, limit: 50 },
      { getNextPageParam: (page) => page.nextCursor ?? undefined, refetchInterval: 10_000 },
    ),
  )
  const consoleNow = query.data?.pages[0]?.now
  useEffect(() => {
    if (consoleNow !== undefined) noteConsoleTime(consoleNow)
  }, [consoleNow])
  const incidents = query.data?.pages.flatMap((page) => page.incidents) ?? []
  const open = query.data?.pages[0]?.open
  return (
    <Card
      title={
        open ? `${open.total} open${open.critical > 0 ? `, ${open.critical} critical` : ''}` : 'Incidents'
      }
      bodyClassName="p-0"
      actions={
        <>
          <AddressChoice
            label="State"
            name="state"
            value={state === 'all' ? null : state}
            options={IncidentState.options}
            words={{ closed: 'resolved' }}
          />
          <AddressChoice
            label="Severity"
            name="severity"
            value={severity ?? null}
            options={IncidentSeverity.options}
          />
        </>
      }
    >
      <PagedList
        query={query}
        noun="incidents"
        rows={incidents.length}
        empty={
          <EmptyState
            icon={BellOff}
            title={
              state === 'open' || (state === 'all' && !severity)
                ? 'No open incidents'
                : 'No matching incidents'
            }
          >
            An incident opens when something needs a person, such as a host that does not answer, a disk that
            is almost full or a step that takes too long, and resolves once its cause has ended.
          </EmptyState>
        }
      >
        <ul aria-label="Incidents">
          {incidents.map((incident) => (
            <IncidentRow key={incident.incidentId} incident={incident} />
          ))}
        </ul>
      </PagedList>
    </Card>
  )
}

function IncidentRow({ incident }: { incident: Incident }) {
  const over = incident.closedAt !== null
  const action = actionOf(incident)
  return (
    <li
      id={incident.incidentId}
      className="flex flex-col gap-x-4 gap-y-2 border-b border-line px-4 py-3 last:border-0 md:flex-row md:items-start"
    >
      <div className="min-w-0 flex-1">
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <SeverityBadge severity={incident.severity} over={over} />
          {over ? <Badge tone="good">resolved</Badge> : <Badge tone="accent">open</Badge>}
          <h3 className="min-w-0 text-sm font-medium break-words text-ink">{incident.title}</h3>
        </div>
        {incident.detail ? (
          <p className="mt-1 text-sm break-words whitespace-pre-wrap text-ink-muted">{incident.detail}</p>
        ) : null}
        {incident.hint && !over ? (
          <p className="mt-0.5 text-sm break-words text-ink-muted">
            <span className="font-medium text-ink">Hint: </span>
            {incident.hint}
          </p>
        ) : null}
        <div className="mt-1.5 flex flex-wrap gap-x-3 gap-y-0.5 text-xs text-ink-muted">
          <IncidentPlaces incident={incident} />
          <Times incident={incident} />
          {incident.acknowledgedByName ? (
            <span>
              acknowledged by <span className="text-ink">{incident.acknowledgedByName}</span>{' '}
              <Age at={incident.acknowledgedAt} />
            </span>
          ) : null}
        </div>
      </div>
      <div className="flex flex-wrap gap-2 self-start">
        {action ? (
          <Button asChild size="small" variant="primary">
            <Link href={action.href}>{action.label}</Link>
          </Button>
        ) : null}
        {isRestored(incident) ? <AcceptRestored incident={incident} /> : null}
        {over || incident.acknowledgedByName ? null : <Acknowledge incident={incident} />}
      </div>
    </li>
  )
}

function Times({ incident: { openedAt, closedAt, closedBecause } }: { incident: Incident }): ReactNode {
  if (closedAt === null)
    return (
      <span>
        since <Moment at={openedAt} /> (<Age at={openedAt} />)
      </span>
    )
  return (
    <>
      <span>
        opened <Moment at={openedAt} />
      </span>
      <span>
        resolved <Moment at={closedAt} /> after {formatDuration(closedAt - openedAt)}
        {closedBecause ? `: ${closedBecause}` : ''}
      </span>
    </>
  )
}

function Acknowledge({ incident }: { incident: Incident }) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const toast = useToast()
  const mayChange = useMayChange()
  const acknowledge = useMutation(
    trpc.incident.acknowledge.mutationOptions({
      onSettled: () => queries.invalidateQueries({ queryKey: trpc.incident.pathKey() }),
      onSuccess: ({ first, incident: now }) => {
        if (!first) toast({ tone: 'info', title: `${now.acknowledgedByName} has already acknowledged it` })
      },
      onError: (error) => {
        const { message, detail } = faultOf(error)
        toast({ tone: 'bad', title: message, description: detail ?? undefined })
      },
    }),
  )
  return (
    <Button
      size="small"
      busy={acknowledge.isPending}
      disabled={!mayChange}
      title={mayChange ? 'Show others that you handle it' : viewerHint}
      aria-label={`Acknowledge: ${incident.title}`}
      onClick={() => acknowledge.mutate({ incidentId: incident.incidentId })}
    >
      <Check aria-hidden />
      Acknowledge
    </Button>
  )
}
