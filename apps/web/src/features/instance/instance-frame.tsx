'use client'
import { operationTitles, protectionWords } from '@floe/domain'
import { Age, Alert, Badge, PageHeader, StateBadge, TabBar, TabLink } from '@floe/ui'
import { RotateCw, ShieldAlert } from 'lucide-react'
import Link from 'next/link'
import { usePathname } from 'next/navigation'
import type { ReactNode } from 'react'
import { OperationLink } from '../operation/operation-link'
import { InstanceActions } from './instance-actions'
import { InstanceProvider, useInstance } from './instance-context'
import { useStaleAge } from './use-age'

const tabs = [
  { path: '', label: 'Overview' },
  { path: '/connect', label: 'Connect' },
  { path: '/replication', label: 'Replication' },
  { path: '/settings', label: 'Settings' },
  { path: '/operations', label: 'Operations' },
  { path: '/danger-zone', label: 'Danger zone' },
] as const

/** Header and tabs around everything about one instance. */
export function InstanceFrame({ segment, children }: { segment: string; children: ReactNode }) {
  return (
    <InstanceProvider segment={segment}>
      <InstanceHeader />
      <div className="pt-4">{children}</div>
    </InstanceProvider>
  )
}

/** On every page of the instance, for as long as a page that a crash tears now may be lost. */
function ExposedBadge({ base }: { base: string }) {
  const { protection, state } = useInstance()
  const words = protection && state === 'running' ? protectionWords(protection) : null
  if (words?.tone !== 'bad') return null
  return (
    <Link href={`${base}#torn-pages`}>
      <Badge tone="bad" title={words.meaning}>
        <ShieldAlert aria-hidden />
        {words.title}
      </Badge>
    </Link>
  )
}

function InstanceHeader() {
  const instance = useInstance()
  const path = usePathname()
  const staleMs = useStaleAge(instance.observedAt)
  const base = `/instances/${instance.name}`
  const rest = path.split('/').slice(3).join('/')
  return (
    <>
      <PageHeader title={instance.name} actions={<InstanceActions />}>
        <div className="mt-1.5 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-ink-muted">
          <StateBadge state={instance.state} of="instance" staleMs={staleMs} />
          {instance.role ? <span>{instance.role}</span> : null}
          {instance.engineVersion ? <span>PostgreSQL {instance.engineVersion}</span> : null}
          {instance.port !== null ? <span className="tabular-nums">port {instance.port}</span> : null}
          <span>
            on <span className="text-ink">{instance.hostName}</span>
          </span>
          {instance.startedAt !== null && instance.state === 'running' ? (
            <span>
              started <Age at={instance.startedAt} />
            </span>
          ) : null}
          <span title="When the controller last saw this instance">
            seen <Age at={instance.observedAt} />
          </span>
          <ExposedBadge base={base} />
          {instance.pendingRestart.length > 0 ? (
            <Link href={`${base}/settings/all?pending=1`}>
              <Badge tone="warn" title={`Waiting for a restart: ${instance.pendingRestart.join(', ')}`}>
                <RotateCw aria-hidden />
                {instance.pendingRestart.length === 1
                  ? '1 setting waits for a restart'
                  : `${instance.pendingRestart.length} settings wait for a restart`}
              </Badge>
            </Link>
          ) : null}
        </div>
        {instance.because && instance.state !== 'running' ? (
          <p className="mt-1 text-sm break-words text-ink-muted">{instance.because}</p>
        ) : null}
      </PageHeader>
      {instance.openOperation ? (
        <Alert
          className="mb-3"
          title={
            <>
              {operationTitles[instance.openOperation.kind]}:{' '}
              <StateBadge state={instance.openOperation.state} of="operation" />
            </>
          }
        >
          <OperationLink operationId={instance.openOperation.operationId}>Follow it</OperationLink>
        </Alert>
      ) : null}
      {instance.state === 'crashed' ? (
        <Alert tone="bad" className="mb-3" title="This instance has crashed">
          {instance.because ?? 'Its process ended though nobody stopped it.'} Start it again; PostgreSQL
          recovers by itself.
        </Alert>
      ) : null}
      <TabBar label="Instance">
        {tabs.map((tab) => (
          <TabLink key={tab.path} current={tab.path === '' ? rest === '' : `/${rest}`.startsWith(tab.path)}>
            <Link href={`${base}${tab.path}`}>{tab.label}</Link>
          </TabLink>
        ))}
      </TabBar>
    </>
  )
}
