'use client'
import { Card, Copyable, Segmented } from '@floe/ui'
import { useState } from 'react'
import type { ClusterDetail } from './use-cluster'

const forms = [
  { key: 'psql', label: 'psql' },
  { key: 'uri', label: 'URI' },
  { key: 'jdbc', label: 'JDBC' },
  { key: 'nodePostgres', label: 'node-postgres' },
  { key: 'go', label: 'Go' },
  { key: 'python', label: 'Python' },
] as const

/** One connection that always reaches the primary, and one for reads, in the forms people paste. */
export function ClusterConnections({ detail }: { detail: ClusterDetail }) {
  const [purpose, setPurpose] = useState<'primary' | 'reads'>('primary')
  const [form, setForm] = useState<(typeof forms)[number]['key']>('psql')
  const { connections } = detail
  return (
    <Card
      title="Connect to the cluster"
      description="It names every member; the client finds the one it needs, also after a switchover. The password is not in it."
    >
      {connections ? (
        <div className="flex min-w-0 flex-col gap-3">
          <div className="flex flex-wrap gap-2">
            <Segmented
              label="For"
              value={purpose}
              onChange={setPurpose}
              choices={[
                { value: 'primary', label: 'Writes', title: 'Always the primary' },
                { value: 'reads', label: 'Reads', title: 'A standby where there is one' },
              ]}
            />
            <Segmented
              label="Form"
              value={form}
              onChange={setForm}
              choices={forms.map(({ key, label }) => ({ value: key, label }))}
            />
          </div>
          <Copyable text={connections[purpose][form]} what="connection" multiline={form === 'nodePostgres'} />
        </div>
      ) : (
        <p className="text-sm text-ink-muted">No address of a member is known yet.</p>
      )}
    </Card>
  )
}
