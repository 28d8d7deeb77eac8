'use client'
import { Alert, Card, FaultAlert, KeyValue, SkeletonRows } from '@floe/ui'
import { faultOf } from '@/trpc/fault'
import { ClusterConnections } from '../cluster/cluster-connections'
import { useCluster } from '../cluster/use-cluster'
import { ConnectionCard } from '../instance/connection-card'
import { useInstance } from '../instance/instance-context'
import { RemoteAccessAlert } from '../instance/remote-access'
import { SharedConnection } from '../shared-server/shared-connection'

/** How to reach an instance; without a password, which nobody but its owner has. */
export function Connect() {
  const instance = useInstance()
  const { connection, forms, cluster } = instance
  const ofCluster = useCluster({ enabled: cluster.members > 1, everyMs: 5_000 })
  if (!connection || !forms)
    return (
      <Alert title="Its address is not known yet">
        Its port is assigned when it is created; this page then shows it.
      </Alert>
    )
  return (
    <div className="flex flex-col gap-3">
      {instance.state !== 'running' ? (
        <Alert tone="warn" title={`This instance is ${instance.state}`}>
          It accepts connections only while it runs.
        </Alert>
      ) : null}
      <RemoteAccessAlert />
      {cluster.members === 1 ? null : ofCluster.data ? (
        <ClusterConnections detail={ofCluster.data} />
      ) : ofCluster.error ? (
        <FaultAlert fault={faultOf(ofCluster.error)} onRetry={() => void ofCluster.refetch()} />
      ) : (
        <Card title="Connect to the cluster">
          <SkeletonRows rows={2} label="Loading the cluster" />
        </Card>
      )}
      <ConnectionCard
        connection={forms}
        title={cluster.members === 1 ? 'Connection' : 'This instance alone'}
        description={
          cluster.members === 1
            ? undefined
            : `It reaches ${instance.name} in any role; after a switchover its role may differ.`
        }
      />
      <SharedConnection />
      <Card title="Details">
        <KeyValue
          items={[
            { label: 'Address', value: connection.host },
            {
              label: 'Port',
              value: connection.port,
              source: 'assigned once, kept while the instance exists',
            },
            { label: 'User', value: connection.user },
            { label: 'Database', value: connection.database },
            { label: 'Data directory', value: instance.directory },
            { label: 'System identifier', value: instance.systemIdentifier, source: 'pg_control_system()' },
            {
              label: 'Data checksums',
              value: instance.dataChecksums === null ? null : instance.dataChecksums ? 'on' : 'off',
              source: 'SHOW data_checksums',
            },
            { label: 'Timeline', value: instance.timeline, source: 'pg_control_checkpoint()' },
            { label: 'Postmaster process id', value: instance.postmasterPid, source: 'postmaster.pid' },
          ]}
        />
      </Card>
      <Alert title="The password">
        It was shown once when the instance was created and is stored nowhere. Any superuser of the instance
        can set a new one with ALTER ROLE.
      </Alert>
    </div>
  )
}
