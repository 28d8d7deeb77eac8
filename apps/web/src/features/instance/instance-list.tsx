'use client'
import type { Point } from '@floe/domain'
import {
  Age,
  Button,
  Card,
  classNames,
  consoleTime,
  EmptyState,
  FaultAlert,
  formatTime,
  formatValue,
  noteConsoleTime,
  PageHeader,
  SearchField,
  SkeletonRows,
  Sparkline,
  StateBadge,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
  useNow,
} from '@floe/ui'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Database, Plus, Search } from 'lucide-react'
import Link from 'next/link'
import { useSearchParams } from 'next/navigation'
import { useDeferredValue, useEffect, useState } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange } from '../console/account-context'
import { OperationLink } from '../operation/operation-link'
import { CreationFailedBadge } from './creation-failed'
import { useStaleAge } from './use-age'
import { useLiveTps } from './use-live-tps'

type Instance = RouterOutputs['instance']['list']['instances'][number]

const windowMs = 60_000
/** A longer list is cut here until all of it is requested: each row is drawn again every second. */
const rowsAtFirst = 100

/** Every instance with what it is and what it does now. The search is kept in the address. */
export function InstanceList() {
  const trpc = useTRPC()
  const params = useSearchParams()
  const mayChange = useMayChange()
  const [search, setSearch] = useState(params.get('search') ?? '')
  const wanted = useDeferredValue(search.trim())
  useEffect(() => {
    const next = new URLSearchParams(window.location.search)
    if (wanted) next.set('search', wanted)
    else next.delete('search')
    const text = next.toString()
    window.history.replaceState(null, '', text ? `?${text}` : window.location.pathname)
  }, [wanted])

  const query = useQuery(
    trpc.instance.list.queryOptions(wanted ? { search: wanted } : {}, {
      refetchInterval: 2_000,
      placeholderData: keepPreviousData,
    }),
  )
  const consoleNow = query.data?.now
  useEffect(() => {
    if (consoleNow !== undefined) noteConsoleTime(consoleNow)
  }, [consoleNow])
  const instances = query.data?.instances
  const [all, setAll] = useState(false)
  const shown = all ? instances : instances?.slice(0, rowsAtFirst)
  const live = useLiveTps(shown ?? none)
  const create = (
    <Button variant="primary" asChild>
      <Link href="/instances/new">
        <Plus aria-hidden />
        Create instance
      </Link>
    </Button>
  )
  const nothingAtAll = instances?.length === 0 && wanted === ''

  return (
    <>
      <PageHeader title="Instances" actions={mayChange && !nothingAtAll ? create : null} />
      {query.error && instances ? (
        <FaultAlert fault={faultOf(query.error)} tone="warn" className="mb-3" />
      ) : null}
      {!nothingAtAll ? (
        <SearchField
          label="Search instances"
          placeholder="Search by name, host or port"
          className="mb-3 max-w-sm"
          value={search}
          onChange={setSearch}
        />
      ) : null}
      <Card bodyClassName="p-0">
        {query.error && !instances ? (
          <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} className="m-3" />
        ) : instances === undefined ? (
          <SkeletonRows label="Loading instances" />
        ) : nothingAtAll ? (
          <EmptyState icon={Database} title="No instances yet" action={mayChange ? create : null}>
            An instance is one PostgreSQL engine with its own data, port and settings. Creating one takes a
            few seconds.
          </EmptyState>
        ) : instances.length === 0 ? (
          <EmptyState
            icon={Search}
            title={`No instance matches "${wanted}"`}
            action={<Button onClick={() => setSearch('')}>Show all</Button>}
          />
        ) : (
          <Table label="Instances">
            <TableHead>
              <tr>
                <TableHeader>Instance</TableHeader>
                <TableHeader>State</TableHeader>
                <TableHeader title="Transactions per second over the last minute; pg_stat_database">
                  TPS
                </TableHeader>
                <TableHeader>Role</TableHeader>
                <TableHeader>Version</TableHeader>
                <TableHeader number>Port</TableHeader>
                <TableHeader>Host</TableHeader>
                <TableHeader title="When the controller last observed it">Seen</TableHeader>
              </tr>
            </TableHead>
            <TableBody>
              {(shown ?? none).map((instance) => (
                <InstanceRow
                  key={instance.instanceId}
                  instance={instance}
                  points={live.get(instance.instanceId) ?? noPoints}
                />
              ))}
            </TableBody>
          </Table>
        )}
        {instances && shown && shown.length < instances.length ? (
          <div className="flex flex-wrap items-center gap-3 border-t border-line px-4 py-3 text-sm text-ink-muted">
            <span>
              The first {shown.length} of {instances.length} by name.
            </span>
            <Button onClick={() => setAll(true)}>Show all</Button>
          </div>
        ) : null}
      </Card>
    </>
  )
}

const none: readonly Instance[] = []
const noPoints: readonly Point[] = []

function InstanceRow({ instance, points }: { instance: Instance; points: readonly Point[] }) {
  const staleMs = useStaleAge(instance.observedAt)
  const now = useNow() ?? consoleTime()
  const newest = points.at(-1)
  // of one that does not run, the last value is of the past from the moment on that this is known
  const fresh = newest !== undefined && now - newest.at < 5_000 && instance.state === 'running'
  return (
    <TableRow
      className={classNames(
        // what is behind a host that does not answer is as old as its last word
        (staleMs !== null || instance.hostState !== 'online') && 'text-ink-muted grayscale',
      )}
    >
      <TableCell className="sm:min-w-36">
        <Link
          href={`/instances/${instance.name}`}
          className="font-medium text-ink hover:text-accent hover:underline"
        >
          {instance.name}
        </Link>
        {instance.openOperation ? (
          <p className="text-xs">
            <OperationLink operationId={instance.openOperation.operationId}>
              {instance.openOperation.kind} {instance.openOperation.state}
            </OperationLink>
          </p>
        ) : instance.pendingRestart.length > 0 ? (
          <p className="text-xs text-warn">waits for a restart</p>
        ) : null}
      </TableCell>
      <TableCell title={instance.because ?? undefined}>
        {instance.creationFailed ? (
          <CreationFailedBadge />
        ) : (
          <StateBadge state={instance.state} of="instance" staleMs={staleMs} />
        )}
      </TableCell>
      <TableCell>
        <span className="flex items-center gap-3">
          <Sparkline
            points={points}
            from={now - windowMs}
            to={now}
            stale={!fresh}
            label={
              fresh
                ? `TPS of the last minute, now ${formatValue(newest.value, '1/s')}`
                : 'TPS of the last minute, not known now'
            }
          />
          <span
            className={classNames('min-w-16 tabular-nums', fresh ? 'font-medium' : 'text-ink-faint')}
            title={newest ? `pg_stat_database, at ${formatTime(newest.at)}` : 'not known'}
          >
            {fresh ? formatValue(newest.value, '1/s') : '–'}
          </span>
        </span>
      </TableCell>
      <TableCell>{instance.role ?? '–'}</TableCell>
      <TableCell className="whitespace-nowrap">{instance.engineVersion ?? '–'}</TableCell>
      <TableCell number>{instance.port ?? '–'}</TableCell>
      <TableCell className="whitespace-nowrap">
        {instance.hostName}
        {instance.hostState !== 'online' ? (
          <StateBadge state={instance.hostState} of="host" className="ml-2" />
        ) : null}
      </TableCell>
      <TableCell>
        <Age at={instance.observedAt} className="text-xs text-ink-muted" />
      </TableCell>
    </TableRow>
  )
}
