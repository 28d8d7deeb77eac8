'use client'
import { formatDuration } from '@floe/domain'
import {
  Age,
  Badge,
  Card,
  Checkbox,
  EmptyState,
  FaultAlert,
  Moment,
  noteConsoleTime,
  SkeletonRows,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useQuery } from '@tanstack/react-query'
import { CircleCheck } from 'lucide-react'
import Link from 'next/link'
import { useEffect, useId, useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { type Incident, incidentHref } from './incident-href'

/** What needs a person, and what did. */
export function IncidentPage() {
  const trpc = useTRPC()
  const [closed, setClosed] = useState(false)
  const closedId = useId()
  const query = useQuery(trpc.incident.list.queryOptions({ closed, limit: 200 }, { refetchInterval: 5_000 }))
  const consoleNow = query.data?.now
  useEffect(() => {
    if (consoleNow !== undefined) noteConsoleTime(consoleNow)
  }, [consoleNow])
  const incidents = query.data?.incidents
  return (
    <Card
      title={closed ? 'Open and over' : 'Open'}
      bodyClassName="p-0"
      actions={
        <span className="flex items-center gap-2 text-sm">
          <Checkbox
            id={closedId}
            checked={closed}
            onCheckedChange={(checked) => setClosed(checked === true)}
          />
          <label htmlFor={closedId}>Also those that are over</label>
        </span>
      }
    >
      {query.error && !incidents ? (
        <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} className="m-3" />
      ) : incidents === undefined ? (
        <SkeletonRows label="Loading incidents" />
      ) : incidents.length === 0 ? (
        <EmptyState
          icon={CircleCheck}
          title={closed ? 'There was no incident' : 'Nothing needs a person now'}
        >
          Incidents open and close by themselves, by what is observed: a crash, a silent host, a full disk, a
          step that takes too long.
        </EmptyState>
      ) : (
        <Table label="Incidents">
          <TableHead>
            <tr>
              <TableHeader>Severity</TableHeader>
              <TableHeader>What</TableHeader>
              <TableHeader>Opened</TableHeader>
              <TableHeader number>Lasted</TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {incidents.map((incident) => (
              <Row key={incident.incidentId} incident={incident} />
            ))}
          </TableBody>
        </Table>
      )}
    </Card>
  )
}

function Row({ incident }: { incident: Incident }) {
  const href = incidentHref(incident)
  return (
    <TableRow>
      <TableCell className="align-top">
        {incident.closedAt === null ? (
          <Badge tone={incident.severity === 'warning' ? 'warn' : 'bad'}>{incident.severity}</Badge>
        ) : (
          <Badge>over</Badge>
        )}
      </TableCell>
      <TableCell className="min-w-56 align-top">
        <p className="font-medium break-words">
          {href ? (
            <Link href={href} className="hover:text-accent hover:underline">
              {incident.title}
            </Link>
          ) : (
            incident.title
          )}
        </p>
        {incident.detail ? <p className="text-xs break-words text-ink-muted">{incident.detail}</p> : null}
        {incident.hint && incident.closedAt === null ? (
          <p className="text-xs break-words text-ink-muted">Hint: {incident.hint}</p>
        ) : null}
      </TableCell>
      <TableCell className="align-top">
        <Moment at={incident.openedAt} />
      </TableCell>
      <TableCell number className="align-top whitespace-nowrap">
        {incident.closedAt === null ? (
          <Age at={incident.openedAt} prefix="since" />
        ) : (
          formatDuration(incident.closedAt - incident.openedAt)
        )}
      </TableCell>
    </TableRow>
  )
}
