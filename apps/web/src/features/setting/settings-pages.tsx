'use client'
import { Button, Card, EmptyState } from '@floe/ui'
import { Network } from 'lucide-react'
import Link from 'next/link'
import { useInstance } from '../instance/instance-context'
import { SettingHistory } from './setting-history'
import { SettingList } from './setting-list'

/** All settings of the instance. */
export function AllSettings() {
  const { instanceId } = useInstance()
  return <SettingList scope={{ instanceId }} />
}

/** Revisions and history of the instance. */
export function InstanceHistory() {
  const { instanceId } = useInstance()
  return <SettingHistory scope={{ instanceId }} />
}

/** Settings of all members of the instance’s cluster together, with their revisions and history. */
export function ClusterSettings() {
  const { cluster, name } = useInstance()
  const scope = { clusterId: cluster.clusterId }
  if (cluster.members === 1)
    return (
      <Card>
        <EmptyState
          icon={Network}
          title="This cluster has one member"
          action={
            <Button asChild>
              <Link href={`/instances/${name}/replication`}>Create a standby</Link>
            </Button>
          }
        >
          Its settings are those of the instance.
        </EmptyState>
      </Card>
    )
  return (
    <>
      <SettingList scope={scope} />
      <div className="mt-3">
        <SettingHistory scope={scope} />
      </div>
    </>
  )
}
