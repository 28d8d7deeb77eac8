'use client'
import { Alert, Card, KeyValue } from '@floe/ui'
import { ConnectionCard } from './connection-card'
import { useInstance } from './instance-context'

/** How to reach an instance; without a password, which nobody but its owner has. */
export function Connect() {
  const instance = useInstance()
  const { connection, forms } = instance
  if (!connection || !forms)
    return (
      <Alert title="It cannot be reached yet">
        Its port is known once it has been created; this page shows it by itself.
      </Alert>
    )
  return (
    <div className="flex flex-col gap-3">
      {instance.state !== 'running' ? (
        <Alert tone="warn" title={`This instance is ${instance.state}`}>
          It takes connections only while it is running.
        </Alert>
      ) : null}
      <ConnectionCard connection={forms} title="Connection" />
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
