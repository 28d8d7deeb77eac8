'use client'
import { formatBytes, formatDuration } from '@floe/domain'
import {
  Age,
  Badge,
  Card,
  EmptyState,
  FaultAlert,
  KeyValue,
  noteConsoleTime,
  Progress,
  SkeletonRows,
  StateBadge,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
  useNow,
} from '@floe/ui'
import { useQuery } from '@tanstack/react-query'
import { HardDrive } from 'lucide-react'
import { useEffect } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'

type Host = RouterOutputs['host']['list']['hosts'][number]

/** Every host with what its agent reports, and how old that is. */
export function HostList() {
  const trpc = useTRPC()
  const query = useQuery(trpc.host.list.queryOptions(undefined, { refetchInterval: 2_000 }))
  const consoleNow = query.data?.now
  useEffect(() => {
    if (consoleNow !== undefined) noteConsoleTime(consoleNow)
  }, [consoleNow])
  if (query.error && !query.data)
    return <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} />
  if (query.isPending)
    return (
      <Card>
        <SkeletonRows label="Loading hosts" />
      </Card>
    )
  if (query.data.hosts.length === 0)
    return (
      <Card>
        <EmptyState icon={HardDrive} title="No host yet">
          The controller registers this machine by itself; "./floe status" says whether it runs.
        </EmptyState>
      </Card>
    )
  return (
    <div className="flex flex-col gap-3">
      {query.data.hosts.map((host) => (
        <HostCard key={host.hostId} host={host} />
      ))}
    </div>
  )
}

function HostCard({ host }: { host: Host }) {
  const now = useNow()
  const { facts } = host
  const age = now === null || host.observedAt === null ? null : Math.max(0, now - host.observedAt)
  const old = host.state !== 'online'
  return (
    <Card
      title={
        <span className="flex flex-wrap items-center gap-2">
          {host.name}
          <StateBadge state={host.state} of="host" />
        </span>
      }
      description={
        <>
          {host.instances} {host.instances === 1 ? 'instance' : 'instances'} · agent{' '}
          {host.agentVersion ?? 'not known'} at {host.agentUrl} · seen <Age at={host.observedAt} />
        </>
      }
    >
      <div className="flex flex-col gap-4">
        {host.fault && old ? <FaultAlert fault={host.fault} tone="warn" /> : null}
        {facts ? (
          <div className={old ? 'flex flex-col gap-4 opacity-60 grayscale' : 'flex flex-col gap-4'}>
            {old && age !== null ? (
              <p className="text-sm text-ink-muted">As last seen {formatDuration(age)} ago; not known now.</p>
            ) : null}
            <KeyValue
              items={[
                { label: 'Operating system', value: facts.operatingSystem, source: 'os-release' },
                { label: 'Kernel', value: `${facts.kernel} (${facts.architecture})`, source: 'uname' },
                { label: 'Processors', value: facts.cpus, source: 'online processors' },
                {
                  label: 'Load, 1 minute',
                  value: facts.loadAverage1.toFixed(2),
                  source: '/proc/loadavg',
                },
                {
                  label: 'Memory available',
                  value: `${formatBytes(facts.memoryAvailableBytes)} of ${formatBytes(facts.memoryBytes)}`,
                  source: '/proc/meminfo: MemAvailable, MemTotal',
                },
                {
                  label: 'Up for',
                  value: formatDuration(facts.uptimeSeconds * 1_000),
                  source: '/proc/uptime',
                },
                {
                  label: 'Supervision',
                  value: facts.supervision === 'systemd' ? 'systemd units' : 'detached processes',
                },
                {
                  label: 'Instance ports',
                  value: `${facts.instancePorts.from}–${facts.instancePorts.to}, ${facts.instancePorts.used} used`,
                },
              ]}
            />
            <Disks disks={facts.disks} host={host.name} />
          </div>
        ) : (
          <p className="text-sm text-ink-muted">Its agent has not answered yet: nothing is known of it.</p>
        )}
        {host.capabilities.length > 0 ? (
          <div className="flex flex-wrap items-center gap-1.5">
            <span className="mr-1 text-xs text-ink-muted">Its agent can</span>
            {host.capabilities.map((capability) => (
              <Badge key={capability}>{capability}</Badge>
            ))}
          </div>
        ) : null}
      </div>
    </Card>
  )
}

function Disks({ disks, host }: { disks: NonNullable<Host['facts']>['disks']; host: string }) {
  if (disks.length === 0) return <p className="text-sm text-ink-muted">Its agent reports no disk.</p>
  return (
    <div className="-mx-4 border-t border-line">
      <Table label={`Disks of ${host}`}>
        <TableHead>
          <tr>
            <TableHeader>Mount</TableHeader>
            <TableHeader>Device</TableHeader>
            <TableHeader>File system</TableHeader>
            <TableHeader number>Free</TableHeader>
            <TableHeader number>Size</TableHeader>
            <TableHeader>In use</TableHeader>
          </tr>
        </TableHead>
        <TableBody>
          {disks.map((disk) => {
            const used = disk.sizeBytes > 0 ? 1 - disk.freeBytes / disk.sizeBytes : null
            return (
              <TableRow key={`${disk.mount} ${disk.device}`}>
                <TableCell className="font-mono text-xs">{disk.mount}</TableCell>
                <TableCell>
                  <span className="font-mono text-xs">{disk.device}</span>
                  {disk.nvme ? <Badge className="ml-2">NVMe</Badge> : null}
                </TableCell>
                <TableCell title={disk.options}>{disk.fileSystem}</TableCell>
                <TableCell number>{formatBytes(disk.freeBytes)}</TableCell>
                <TableCell number>{formatBytes(disk.sizeBytes)}</TableCell>
                <TableCell className="min-w-36">
                  {used === null ? (
                    '–'
                  ) : (
                    <span className="flex items-center gap-2">
                      <Progress
                        label={`${disk.mount} in use`}
                        value={used}
                        tone={used > 0.95 ? 'bad' : used > 0.85 ? 'warn' : 'accent'}
                        className="max-w-28"
                      />
                      <span className="text-xs text-ink-muted tabular-nums">{(used * 100).toFixed(0)} %</span>
                    </span>
                  )}
                </TableCell>
              </TableRow>
            )
          })}
        </TableBody>
      </Table>
    </div>
  )
}
