'use client'
import { operationRecord, protectionWords, withoutTlsWarning } from '@floe/domain'
import { Age, Alert, Badge, FaultAlert, PageHeader, StateBadge, TabBar, TabLink } from '@floe/ui'
import { LockOpen, RotateCw, ShieldAlert } from 'lucide-react'
import Link from 'next/link'
import { usePathname } from 'next/navigation'
import type { ReactNode } from 'react'
import { OperationLink } from '../operation/operation-link'
import { AdoptNotice } from './adopt-notice'
import { CreationFailed } from './creation-failed'
import { InstanceActions } from './instance-actions'
import { InstanceProvider, useInstance } from './instance-context'
import { SharedUserNotice } from './shared-user-notice'
import { useStaleAge } from './use-age'

const tabs = [
  { path: '', label: 'Overview' },
  { path: '/connect', label: 'Connect' },
  { path: '/connections', label: 'Connections' },
  { path: '/replication', label: 'Replication' },
  { path: '/flashback', label: 'Flashback' },
  { path: '/settings', label: 'Settings' },
  { path: '/operations', label: 'Operations' },
  { path: '/danger-zone', label: 'Danger zone' },
] as const

/** Header and tabs around everything about one instance. */
export function InstanceFrame({ segment, children }: { segment: string; children: ReactNode }) {
  return (
    <InstanceProvider segment={segment}>
      <InstanceBody>{children}</InstanceBody>
    </InstanceProvider>
  )
}

function InstanceBody({ children }: { children: ReactNode }) {
  const { creationFailed } = useInstance()
  if (creationFailed) return <CreationFailed />
  return (
    <>
      <InstanceHeader />
      <div className="pt-4">{children}</div>
    </>
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

/** Only where clients on other hosts can connect at all; the Connect page has the button. */
function WithoutTlsBadge({ base }: { base: string }) {
  const { remoteAccess } = useInstance()
  const warning = remoteAccess?.listens ? withoutTlsWarning(remoteAccess) : null
  if (warning === null) return null
  return (
    <Link href={`${base}/connect`}>
      <Badge tone="warn" title={warning}>
        <LockOpen aria-hidden />
        TLS is not required
      </Badge>
    </Link>
  )
}

/** Whether the line below the name has the reason of the state: of one not heard of it is of another state. */
const saysWhy = ({ state, processFault }: ReturnType<typeof useInstance>) =>
  state !== 'running' && state !== 'unknown' && state !== 'crashed' && !processFault

/** One that is to be fenced and still runs, or is not heard of, is not called fenced. */
const isFencedAndDown = ({ state, cluster }: ReturnType<typeof useInstance>) =>
  cluster.memberRole === 'fenced' && (state === 'stopped' || state === 'crashed')

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
          <span title="When the controller last observed this instance">
            seen <Age at={instance.observedAt} />
          </span>
          <ExposedBadge base={base} />
          <WithoutTlsBadge base={base} />
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
        {instance.because && saysWhy(instance) ? (
          <p className="mt-1 text-sm break-words text-ink-muted">{instance.because}</p>
        ) : null}
      </PageHeader>
      {instance.openOperation ? (
        <Alert
          className="mb-3"
          title={
            <>
              {operationRecord(instance.openOperation.kind).title}:{' '}
              <StateBadge state={instance.openOperation.state} of="operation" />
            </>
          }
        >
          <OperationLink operationId={instance.openOperation.operationId}>Follow it</OperationLink>
        </Alert>
      ) : null}
      {isFencedAndDown(instance) ? (
        <Alert tone="warn" className="mb-3" title="This instance is fenced">
          Another member took over, so it does not start. Rejoin it to bring it back as a standby.
        </Alert>
      ) : instance.state === 'crashed' ? (
        <Alert tone="bad" className="mb-3" title="This instance has crashed">
          <p className="break-words whitespace-pre-line">
            {instance.because ?? 'Its process ended unexpectedly.'}
          </p>
          <p>
            Start it again; PostgreSQL then recovers from its WAL.
            {instance.cluster.memberRole === 'primary' && instance.cluster.members > 1 ? (
              <>
                {' '}
                If it does not start,{' '}
                <Link
                  href={`${base}/replication/takeover`}
                  className="font-medium text-accent underline-offset-2 hover:underline"
                >
                  fail over to a standby
                </Link>
                .
              </>
            ) : null}
          </p>
        </Alert>
      ) : null}
      {instance.processFault ? <FaultAlert fault={instance.processFault} className="mb-3" /> : null}
      <AdoptNotice />
      <SharedUserNotice />
      <TabBar label="Instance">
        {tabs.map((tab) => (
          <TabLink
            key={tab.path}
            current={tab.path === '' ? rest === '' : `/${rest}/`.startsWith(`${tab.path}/`)}
          >
            <Link href={`${base}${tab.path}`}>{tab.label}</Link>
          </TabLink>
        ))}
      </TabBar>
    </>
  )
}
