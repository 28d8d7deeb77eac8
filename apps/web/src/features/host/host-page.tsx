'use client'
import {
  Age,
  Alert,
  Badge,
  Card,
  ConfirmDialog,
  classNames,
  FaultAlert,
  formatTime,
  KeyValue,
  Moment,
  noteConsoleTime,
  PageHeader,
  SkeletonRows,
  StateBadge,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Server } from 'lucide-react'
import Link from 'next/link'
import { useRouter } from 'next/navigation'
import { useEffect, useState } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf, isNotFound } from '@/trpc/fault'
import { administratorHint, useMayAdminister } from '../console/account-context'
import { Danger } from '../console/danger'
import { NotThere } from '../console/not-there'
import { AddHost } from './add-host'
import { EngineCard } from './engine-card'
import { HostCheckCard } from './host-check-card'
import { HostFactsView } from './host-facts'
import { HostMapCard } from './host-map'
import { PowerSupplyCard } from './power-supply-card'
import { useHostAge } from './use-host-age'

type Detail = RouterOutputs['host']['show']
type Host = Detail['host']

/** One host: its machine, disks, agent, certificate and instances, each as old as it is. */
export function HostPage({ name }: { name: string }) {
  const trpc = useTRPC()
  const query = useQuery(trpc.host.show.queryOptions({ name }, { refetchInterval: 2_000 }))
  const consoleNow = query.data?.now
  useEffect(() => {
    if (consoleNow !== undefined) noteConsoleTime(consoleNow)
  }, [consoleNow])
  const fault = query.error ? faultOf(query.error) : null
  if (isNotFound(fault))
    return (
      <NotThere
        title={name}
        what={`Host "${name}" does not exist`}
        icon={Server}
        list={{ href: '/hosts', label: 'All hosts' }}
      />
    )
  if (!query.data)
    return fault ? (
      <FaultAlert fault={fault} onRetry={() => void query.refetch()} />
    ) : (
      <Card>
        <SkeletonRows label="Loading the host" />
      </Card>
    )
  return <HostView detail={query.data} />
}

function HostView({ detail }: { detail: Detail }) {
  const { host, instanceList } = detail
  const ageMs = useHostAge(host)
  return (
    <>
      <PageHeader
        title={host.name}
        // there all the time: its dialog must outlive what it brings about
        actions={host.own ? null : <AddHost again={{ name: host.name }} />}
      >
        <div className="mt-1.5 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-ink-muted">
          <StateBadge state={host.state} of="host" />
          {host.revokedAt === null ? null : <Badge tone="bad">revoked</Badge>}
          {host.own ? <Badge>this console’s machine</Badge> : null}
          <span>
            seen <Age at={host.observedAt} />
          </span>
        </div>
      </PageHeader>
      <div className="flex flex-col gap-3">
        {host.revokedAt === null ? (
          host.fault && host.state !== 'online' ? (
            <FaultAlert fault={host.fault} tone="warn" />
          ) : null
        ) : (
          <Alert tone="bad" title={`Revoked by ${host.revokedBy} at ${formatTime(host.revokedAt)}`}>
            Its certificate and its reports are no longer accepted. Its instances may run on; this console
            does not see them. Enrol it again to have it back, or remove it.
          </Alert>
        )}
        <HostMapCard host={host} ageMs={ageMs} />
        <Card title="Agent">
          <KeyValue
            items={[
              { label: 'Version', value: host.agentVersion, source: 'hello.agentVersion' },
              ...(host.facts?.packages?.installed ?? []).map(({ name, version, status }) => ({
                label: name,
                value: (
                  <span className="break-all font-mono text-xs">
                    {version}
                    {status === 'installed' ? '' : ` (${status})`}
                  </span>
                ),
                source: 'report.facts.packages, as dpkg has it',
              })),
              { label: 'Contract', value: host.contractVersion, source: 'hello.contractVersion' },
              { label: 'Address', value: host.agentUrl },
              { label: 'Enrolled', value: host.own ? 'by ./floe up' : <Moment at={host.enrolledAt} /> },
              {
                label: 'Certificate ends',
                value:
                  host.revokedAt !== null ? (
                    'no longer accepted'
                  ) : host.certificateEndsAt === null ? null : (
                    <Moment at={host.certificateEndsAt} />
                  ),
                source: 'Renewed by the controller after a third of its lifetime',
              },
              { label: 'Host id', value: <span className="font-mono text-xs">{host.hostId}</span> },
            ]}
          />
          {host.capabilities.length > 0 ? (
            <div className="mt-3 flex flex-wrap items-center gap-1.5">
              <span className="mr-1 text-xs text-ink-muted">It can</span>
              {host.capabilities.map((capability) => (
                <Badge key={capability}>{capability}</Badge>
              ))}
            </div>
          ) : null}
        </Card>
        <Card title="Machine">
          <HostFactsView facts={host.facts} host={host.name} ageMs={ageMs} sharedUser={host.sharedUser} />
        </Card>
        <HostCheckCard host={host} check={detail.check} />
        <PowerSupplyCard host={host} />
        {host.revokedAt === null ? <EngineCard host={host} /> : null}
        <Instances instances={instanceList} old={host.state !== 'online'} />
        {host.own ? null : <HostDangerZone host={host} />}
      </div>
    </>
  )
}

/** Instances of a host that is not online are greyed: what was seen of them is as old as the host's last word. */
function Instances({ instances, old }: { instances: Detail['instanceList']; old: boolean }) {
  return (
    <Card title="Instances" bodyClassName={instances.length === 0 ? undefined : 'p-0'}>
      {instances.length === 0 ? (
        <p className="text-sm text-ink-muted">This host has no instances.</p>
      ) : (
        <Table label="Instances of this host">
          <TableHead>
            <tr>
              <TableHeader>Instance</TableHeader>
              <TableHeader>State</TableHeader>
              <TableHeader>Role</TableHeader>
              <TableHeader>Version</TableHeader>
              <TableHeader>Build</TableHeader>
              <TableHeader number>Port</TableHeader>
              <TableHeader>Seen</TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {instances.map((i) => (
              <TableRow
                key={i.instanceId}
                className={classNames(old && 'text-ink-muted grayscale')}
                data-stale={old}
              >
                <TableCell>
                  <Link
                    href={`/instances/${i.name}`}
                    className="font-medium text-ink hover:text-accent hover:underline"
                  >
                    {i.name}
                  </Link>
                </TableCell>
                <TableCell>
                  <StateBadge state={i.state} of="instance" />
                  {i.state === i.lastState ? null : (
                    <span className="ml-2 text-xs text-ink-muted">was {i.lastState}</span>
                  )}
                </TableCell>
                <TableCell>{i.role ?? '–'}</TableCell>
                <TableCell>{i.engineVersion ?? '–'}</TableCell>
                <TableCell>
                  <BuildOf engine={i.engine} />
                </TableCell>
                <TableCell number>{i.port ?? '–'}</TableCell>
                <TableCell>
                  <Age at={i.observedAt} />
                </TableCell>
              </TableRow>
            ))}
          </TableBody>
        </Table>
      )}
    </Card>
  )
}

/** The build that an instance runs, and whether another one is installed. */
function BuildOf({ engine }: { engine: Detail['instanceList'][number]['engine'] }) {
  if (engine === null) return '–'
  return (
    <span className="inline-flex flex-wrap items-center gap-1.5">
      <span className="font-mono text-xs">{engine.running ?? engine.build}</span>
      {engine.current ? null : <Badge tone="warn">not the installed one</Badge>}
    </span>
  )
}

/** Revoking and removing; each wants the host's name typed. */
function HostDangerZone({ host }: { host: Host }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const router = useRouter()
  const mayAdminister = useMayAdminister()
  const [asking, setAsking] = useState<'revoke' | 'remove' | null>(null)
  const seen = () => void queryClient.invalidateQueries(trpc.host.pathFilter())
  const revoke = useMutation(
    trpc.host.revoke.mutationOptions({
      onSuccess: () => {
        setAsking(null)
        seen()
      },
    }),
  )
  const remove = useMutation(
    trpc.host.remove.mutationOptions({
      onSuccess: () => {
        router.push('/hosts')
        seen()
      },
    }),
  )
  const close = (open: boolean) => {
    if (open) return
    setAsking(null)
    revoke.reset()
    remove.reset()
  }
  const { hostId, name } = host
  const revoked = host.revokedAt !== null
  return (
    <Card title="Danger zone" className="border-bad/40" bodyClassName="p-0">
      <Danger
        title="Revoke this host"
        button="Revoke host"
        disabled={!mayAdminister || revoked}
        hint={mayAdminister ? (revoked ? 'It is revoked already.' : undefined) : administratorHint}
        onPress={() => setAsking('revoke')}
      >
        Its certificate and its reports are no longer accepted, and operations on it fail. Its instances keep
        running, unobserved.
      </Danger>
      <Danger
        title="Remove this host"
        button="Remove host"
        disabled={!mayAdminister || !revoked}
        hint={mayAdminister ? (revoked ? undefined : 'Revoke it first.') : administratorHint}
        onPress={() => setAsking('remove')}
      >
        Removes the host and its instances from the console. Nothing is deleted on the machine itself.
      </Danger>
      <ConfirmDialog
        open={asking === 'revoke'}
        onOpenChange={close}
        title={`Revoke ${name}?`}
        confirmLabel="Revoke host"
        danger
        typedName={name}
        busy={revoke.isPending}
        fault={revoke.error ? faultOf(revoke.error) : null}
        onConfirm={() => revoke.mutate({ hostId, confirmName: name })}
      >
        <p>
          {host.instances === 0
            ? 'It has no instances.'
            : `The console no longer observes its ${host.instances} ${host.instances === 1 ? 'instance' : 'instances'}, and open operations on them fail.`}{' '}
          To restore it, enrol it again.
        </p>
      </ConfirmDialog>
      <ConfirmDialog
        open={asking === 'remove'}
        onOpenChange={close}
        title={`Remove ${name}?`}
        confirmLabel="Remove host"
        danger
        typedName={name}
        busy={remove.isPending}
        fault={remove.error ? faultOf(remove.error) : null}
        onConfirm={() => remove.mutate({ hostId, confirmName: name })}
      >
        <p>
          {host.instances === 0
            ? 'It has no instances.'
            : `Its ${host.instances} ${host.instances === 1 ? 'instance is' : 'instances are'} removed from the console; engines and files on the machine are unchanged.`}
        </p>
      </ConfirmDialog>
    </Card>
  )
}
