'use client'
import { agentPackageOf, formatDuration } from '@floe/domain'
import {
  Age,
  Badge,
  Button,
  Card,
  EmptyState,
  FaultAlert,
  noteConsoleTime,
  PageHeader,
  SkeletonRows,
  StateBadge,
  useNow,
} from '@floe/ui'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { HardDrive } from 'lucide-react'
import Link from 'next/link'
import { useEffect } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayAdminister } from '../console/account-context'
import { AddHost } from './add-host'
import { HostFactsView } from './host-facts'
import { useHostAge } from './use-host-age'

type Host = RouterOutputs['host']['list']['hosts'][number]
type Enrolment = RouterOutputs['host']['list']['enrolments'][number]

/** Every host with what its agent reports and how old that is, and the tokens that are waited for. */
export function HostList() {
  const trpc = useTRPC()
  const query = useQuery(trpc.host.list.queryOptions(undefined, { refetchInterval: 2_000 }))
  const consoleNow = query.data?.now
  useEffect(() => {
    if (consoleNow !== undefined) noteConsoleTime(consoleNow)
  }, [consoleNow])
  return (
    <>
      <PageHeader
        title="Hosts"
        description="Machines with an agent, as their agents last reported them."
        actions={<AddHost />}
      />
      {query.error && !query.data ? (
        <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} />
      ) : query.data === undefined ? (
        <Card>
          <SkeletonRows label="Loading hosts" />
        </Card>
      ) : query.data.hosts.length + query.data.enrolments.length === 0 ? (
        <Card>
          <EmptyState icon={HardDrive} title="No host yet">
            The controller registers this machine automatically; "./floe status" shows whether it runs.
          </EmptyState>
        </Card>
      ) : (
        <div className="flex flex-col gap-3">
          {query.data.enrolments.map((enrolment) => (
            <EnrolmentCard key={enrolment.enrolmentId} enrolment={enrolment} />
          ))}
          {query.data.hosts.map((host) => (
            <HostCard key={host.hostId} host={host} />
          ))}
        </div>
      )}
    </>
  )
}

const words: Record<Enrolment['state'], string> = {
  waiting: 'Its token is unused.',
  signing: 'Its agent has asked; the controller is signing its certificate.',
  enrolled: 'It is enrolled.',
  failed: 'It got no certificate.',
  expired: 'Its token expired unused.',
  withdrawn: 'Its token was withdrawn.',
}

function EnrolmentCard({ enrolment }: { enrolment: Enrolment }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const now = useNow()
  const mayAdminister = useMayAdminister()
  const withdraw = useMutation(
    trpc.host.withdraw.mutationOptions({
      onSettled: () => void queryClient.invalidateQueries(trpc.host.list.pathFilter()),
    }),
  )
  const { name, state, actorName, expiresAt } = enrolment
  return (
    <Card
      title={
        <span className="flex flex-wrap items-center gap-2">
          {name}
          <Badge tone={state === 'failed' || state === 'expired' ? 'warn' : 'accent'}>
            {state === 'waiting' ? 'waiting for its agent' : state}
          </Badge>
        </span>
      }
      description={
        <>
          token given to {actorName} <Age at={enrolment.createdAt} />
          {state === 'waiting' && now !== null && expiresAt > now
            ? `, good for ${formatDuration(expiresAt - now)}`
            : ''}
        </>
      }
      actions={
        mayAdminister && state === 'waiting' ? (
          <Button
            size="small"
            busy={withdraw.isPending}
            onClick={() => withdraw.mutate({ enrolmentId: enrolment.enrolmentId })}
          >
            Withdraw token
          </Button>
        ) : null
      }
    >
      {enrolment.fault ? (
        <FaultAlert fault={enrolment.fault} tone="warn" />
      ) : (
        <p className="text-sm text-ink-muted">{words[state]}</p>
      )}
    </Card>
  )
}

function HostCard({ host }: { host: Host }) {
  const ageMs = useHostAge(host)
  return (
    <Card
      title={
        <span className="flex flex-wrap items-center gap-2">
          <Link
            href={`/hosts/${encodeURIComponent(host.name)}`}
            className="hover:text-accent hover:underline"
          >
            {host.name}
          </Link>
          <StateBadge state={host.state} of="host" />
          {host.revokedAt === null ? null : <Badge tone="bad">revoked</Badge>}
          {host.own ? <Badge>this console’s machine</Badge> : null}
        </span>
      }
      description={
        <>
          {host.instances} {host.instances === 1 ? 'instance' : 'instances'} · agent{' '}
          {agentPackageOf(host.facts) ?? host.agentVersion ?? 'not known'} at {host.agentUrl} · seen{' '}
          <Age at={host.observedAt} />
        </>
      }
    >
      <div className="flex flex-col gap-4">
        {host.fault && host.state !== 'online' ? <FaultAlert fault={host.fault} tone="warn" /> : null}
        <HostFactsView facts={host.facts} host={host.name} ageMs={ageMs} sharedUser={host.sharedUser} />
      </div>
    </Card>
  )
}
