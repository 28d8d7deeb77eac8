'use client'
import { formatBytes, formatDuration, type HostFacts } from '@floe/domain'
import {
  Badge,
  classNames,
  KeyValue,
  Progress,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import Link from 'next/link'
import { Fragment } from 'react'

/** What an agent says of its machine. `ageMs`: set where that is too old to be what is, which is then greyed and said. */
export function HostFactsView({
  facts,
  host,
  ageMs,
  sharedUser,
}: {
  facts: HostFacts | null
  host: string
  /** Names of its instances that share a user with others although it could separate them. */
  sharedUser: string[]
  ageMs: number | null
}) {
  if (!facts) return <p className="text-sm text-ink-muted">Its agent has not answered yet.</p>
  const { instancePorts } = facts
  return (
    <div
      className={classNames(
        'flex flex-col gap-4',
        // greyed, and still dark enough to be read
        ageMs !== null && 'grayscale [&_dd]:text-ink-muted [&_td]:text-ink-muted',
      )}
    >
      {ageMs === null ? null : (
        <p className="text-sm text-ink-muted">As last seen {formatDuration(ageMs)} ago; not known now.</p>
      )}
      <KeyValue
        items={[
          { label: 'Operating system', value: facts.operatingSystem, source: 'os-release' },
          { label: 'Kernel', value: `${facts.kernel} (${facts.architecture})`, source: 'uname' },
          { label: 'Processors', value: facts.cpus, source: 'online processors' },
          { label: 'Load, 1 minute', value: facts.loadAverage1.toFixed(2), source: '/proc/loadavg' },
          {
            label: 'Memory available',
            value: `${formatBytes(facts.memoryAvailableBytes)} of ${formatBytes(facts.memoryBytes)}`,
            source: '/proc/meminfo: MemAvailable, MemTotal',
          },
          { label: 'Up for', value: formatDuration(facts.uptimeSeconds * 1_000), source: '/proc/uptime' },
          {
            label: 'Supervision',
            value: facts.supervision === 'systemd' ? 'systemd units' : 'detached processes',
          },
          {
            label: 'OS users',
            value:
              facts.separateUsers === undefined
                ? 'unknown: the agent is of an earlier version'
                : facts.separateUsers
                  ? separation(sharedUser)
                  : 'one for all instances: a superuser of one reaches the files of all',
          },
          {
            label: 'Instance ports',
            value: `${instancePorts.from}–${instancePorts.to}, ${instancePorts.used} used`,
          },
        ]}
      />
      <Disks disks={facts.disks} host={host} />
    </div>
  )
}

function separation(sharedUser: string[]) {
  if (sharedUser.length === 0) return 'one per instance'
  return (
    <span className="text-warn">
      one per instance, but{' '}
      {sharedUser.map((name, i) => (
        <Fragment key={name}>
          {i === 0 ? null : ', '}
          <Link className="underline" href={`/instances/${name}`}>
            {name}
          </Link>
        </Fragment>
      ))}{' '}
      {sharedUser.length === 1 ? 'shares' : 'share'} one with others
    </span>
  )
}

function Disks({ disks, host }: { disks: HostFacts['disks']; host: string }) {
  if (disks.length === 0) return <p className="text-sm text-ink-muted">Its agent reports no disk.</p>
  return (
    <div className="-mx-4 border-t border-line">
      <Table label={`Disks of ${host}`}>
        <TableHead>
          <tr>
            <TableHeader>Mount</TableHeader>
            <TableHeader>Device</TableHeader>
            <TableHeader>File system</TableHeader>
            <TableHeader>Mount options</TableHeader>
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
                <TableCell className="whitespace-nowrap">
                  <span className="font-mono text-xs">{disk.device}</span>
                  <Badge className="ml-2" tone={disk.nvme ? 'good' : 'neutral'}>
                    {disk.nvme ? 'NVMe' : 'not NVMe'}
                  </Badge>
                </TableCell>
                <TableCell>{disk.fileSystem}</TableCell>
                <TableCell className="max-w-56 min-w-36 font-mono text-xs break-words text-ink-muted">
                  {disk.options.replaceAll(',', ', ')}
                </TableCell>
                <TableCell number>{formatBytes(disk.freeBytes)}</TableCell>
                <TableCell number>{formatBytes(disk.sizeBytes)}</TableCell>
                <TableCell className="min-w-36">
                  {used === null ? (
                    '–'
                  ) : (
                    <Progress
                      label={`${disk.mount} in use`}
                      value={used}
                      tone={used > 0.95 ? 'bad' : used > 0.85 ? 'warn' : 'accent'}
                      showPercent
                      className="max-w-40"
                    />
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
