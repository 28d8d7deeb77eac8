'use client'
import { Alert, Button, Card, EmptyState, FaultAlert, SkeletonRows } from '@floe/ui'
import { ArrowLeftRight, Network, Plus } from 'lucide-react'
import Link from 'next/link'
import { useState } from 'react'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { useInstance } from '../instance/instance-context'
import { OperationLink } from '../operation/operation-link'
import { AutomaticCard, AutomaticWordAlert } from './automatic-card'
import { ClusterConnections } from './cluster-connections'
import { CommitModesCard } from './commit-modes-card'
import { CommitsWait } from './commits-wait'
import { CreateStandby } from './create-standby'
import { KeptAsideLines } from './kept-aside'
import { LagChart } from './lag-chart'
import { MemberTable } from './member-table'
import { PageRepairCard } from './page-repair-card'
import { RecoverCluster } from './recover-cluster'
import { SynchronousCard } from './synchronous-card'
import { Topology } from './topology'
import { useCluster } from './use-cluster'

/** The cluster of an instance: its members, how far each is, what commits wait for, and how to connect. */
export function Replication() {
  const instance = useInstance()
  const query = useCluster()
  const mayChange = useMayChange()
  const [creating, setCreating] = useState(false)
  if (query.error && !query.data)
    return <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} />
  if (!query.data)
    return (
      <Card>
        <SkeletonRows label="Loading the cluster" />
      </Card>
    )
  const detail = query.data
  const { cluster } = detail
  const single = cluster.members.length === 1
  const create = (
    <Button
      variant={single ? 'primary' : 'secondary'}
      disabled={!mayChange || detail.openOperation !== null}
      title={mayChange ? undefined : viewerHint}
      onClick={() => setCreating(true)}
    >
      <Plus aria-hidden />
      Create standby
    </Button>
  )
  // an operation that owns the cluster may be about to fence it, or to bring it back
  const fenced = cluster.members.filter(
    (m) => m.memberRole === 'fenced' && (m.fenced !== null || detail.openOperation === null),
  )
  return (
    <div className="flex min-w-0 flex-col gap-3">
      {query.error ? <FaultAlert fault={faultOf(query.error)} tone="warn" /> : null}
      <CommitsWait detail={detail} />
      <RecoverCluster detail={detail} />
      {cluster.automatic && cluster.automaticWord ? (
        <AutomaticWordAlert
          word={cluster.automaticWord}
          primary={cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)?.name}
        />
      ) : null}
      {fenced.map((m) => (
        <Alert
          key={m.instanceId}
          tone="warn"
          title={`"${m.name}" ${m.fenced ? 'is fenced' : 'is not fenced yet'}`}
        >
          {m.fenced
            ? `${m.fenced.reason}. It starts as a standby only. Rejoin it below.`
            : `It is fenced as soon as host "${m.hostName}" answers, and starts as a standby only. Rejoin it then.`}
        </Alert>
      ))}
      <Card
        title={single ? 'Cluster of one' : `Cluster ${cluster.name}`}
        bodyClassName="p-0"
        actions={
          <div className="flex flex-wrap gap-2">
            {single ? null : (
              <Button asChild>
                <Link href={`/instances/${instance.name}/replication/takeover`}>
                  <ArrowLeftRight aria-hidden />
                  Switch over
                </Link>
              </Button>
            )}
            {single ? null : create}
          </div>
        }
      >
        {single ? (
          <EmptyState icon={Network} title="No standby yet" action={create}>
            A standby is a copy that follows this instance and can take over from it.
          </EmptyState>
        ) : (
          <>
            <Topology detail={detail} />
            <div className="border-t border-line">
              <MemberTable detail={detail} />
            </div>
            <KeptAsideLines members={cluster.members} />
          </>
        )}
      </Card>
      {detail.openOperation ? (
        <p className="text-sm text-ink-muted">
          <OperationLink operationId={detail.openOperation.operationId}>An operation</OperationLink> works on
          this cluster.
        </p>
      ) : null}
      {single ? null : (
        <>
          <LagChart detail={detail} />
          <div className="grid grid-cols-1 items-start gap-3 xl:grid-cols-2">
            <div className="flex min-w-0 flex-col gap-3">
              <SynchronousCard
                key={JSON.stringify([cluster.synchronous, cluster.commitMode])}
                detail={detail}
              />
              <CommitModesCard detail={detail} />
            </div>
            <div className="flex flex-col gap-3">
              <AutomaticCard key={JSON.stringify(cluster.automatic)} detail={detail} />
              <PageRepairCard
                key={JSON.stringify([cluster.pageRepair, cluster.members.map((m) => m.instanceId)])}
                detail={detail}
              />
              <ClusterConnections detail={detail} />
            </div>
          </div>
        </>
      )}
      <CreateStandby detail={detail} open={creating} onClose={() => setCreating(false)} />
    </div>
  )
}
