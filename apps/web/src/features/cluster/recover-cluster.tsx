'use client'
import { recoverWords } from '@floe/domain'
import { Alert, Button, ConfirmDialog } from '@floe/ui'
import { useState } from 'react'
import { useMayAdminister } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { refusalOf } from '../operation/refusal'
import { type ClusterDetail, useClusterVerbs } from './use-cluster'

/** Offered while no member of a cluster with standbys runs: then each may wait for what only another one’s disk has. */
export function RecoverCluster({ detail }: { detail: ClusterDetail }) {
  const { cluster } = detail
  const [asking, setAsking] = useState(false)
  const { recover } = useClusterVerbs()
  const mayAdminister = useMayAdminister()
  const primary = cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
  const members = cluster.members.filter((m) => m.memberRole !== 'fenced')
  const down = members.every((m) => m.state === 'crashed' || m.state === 'stopped' || m.state === 'starting')
  const crashed = members.some((m) => m.state === 'crashed')
  const offered = down && (crashed || primary?.intent === 'running') && members.length > 1
  // a dialog that is open stays until the person has closed it
  if (!primary || !(asking || (offered && detail.openOperation === null))) return null
  return (
    <>
      <Alert tone="warn" title="No member of this cluster runs">
        <p>
          A member whose agent still tries to start it may come back by itself. Where the log of one says that
          a page is torn and no source could give it, the cluster can be recovered.
        </p>
        <Button
          disabled={!mayAdminister}
          title={mayAdminister ? undefined : 'An owner or admin can recover a cluster.'}
          onClick={() => setAsking(true)}
        >
          Recover cluster
        </Button>
      </Alert>
      <ConfirmDialog
        open={asking}
        onOpenChange={(open) => {
          if (!open) recover.reset()
          setAsking(open)
        }}
        title={`Recover cluster ${cluster.name}`}
        confirmLabel="Recover cluster"
        danger
        typedName={primary.name}
        busy={recover.isPending}
        {...refusalOf(recover.error)}
        onConfirm={() =>
          recover.mutate(
            {
              clusterId: cluster.clusterId,
              confirmName: primary.name,
              idempotencyKey: newIdempotencyKey(),
            },
            { onSuccess: () => setAsking(false) },
          )
        }
      >
        {Object.entries(recoverWords).map(([what, words]) => (
          <p key={what}>{words}</p>
        ))}
      </ConfirmDialog>
    </>
  )
}
