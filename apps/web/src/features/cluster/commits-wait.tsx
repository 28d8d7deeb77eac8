'use client'
import { commitModeWords } from '@floe/domain'
import { Alert, Button, ConfirmDialog } from '@floe/ui'
import Link from 'next/link'
import { useState } from 'react'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from '../instance/instance-context'
import { refusalOf } from '../operation/refusal'
import { waitingForFewer } from './synchronous-choice'
import { type ClusterDetail, useCluster, useClusterVerbs } from './use-cluster'

type Waiting = NonNullable<ClusterDetail['waiting']>

const titleOf = ({ connected, asked }: Waiting) =>
  `Commits wait: ${connected} of ${asked} synchronous standbys ${connected === 1 ? 'is' : 'are'} connected`
const sessionsOf = ({ waiting }: Waiting) =>
  waiting === 1 ? '1 session waits at this moment.' : `${waiting} sessions wait at this moment.`
const standbysOf = (n: number) => (n === 1 ? '1 standby' : `${n} standbys`)

/** That commits wait because too few synchronous standbys are connected, and what can be done about it. */
export function CommitsWait({ detail }: { detail: ClusterDetail }) {
  const { cluster, waiting } = detail
  const verbs = useClusterVerbs()
  const mayChange = useMayChange()
  const [asking, setAsking] = useState<'fewer' | 'none' | null>(null)
  if (!waiting) return null
  const fewer = waitingForFewer(cluster.synchronous, waiting)
  const off = !mayChange || detail.openOperation !== null
  const hint = mayChange ? (off ? 'Another operation has not ended yet.' : undefined) : viewerHint
  const synchronous = asking === 'fewer' ? fewer : null
  return (
    <>
      <Alert
        tone="bad"
        title={titleOf(waiting)}
        actions={
          <>
            <Button
              size="small"
              disabled={off || !fewer}
              title={fewer ? hint : 'No synchronous standby is connected.'}
              onClick={() => setAsking('fewer')}
            >
              Wait for fewer standbys
            </Button>
            <Button size="small" disabled={off} title={hint} onClick={() => setAsking('none')}>
              Stop waiting
            </Button>
          </>
        }
      >
        {sessionsOf(waiting)} Commits go through once a standby is back: start it, rejoin it below or create
        another one. Or let them through now:
      </Alert>
      <ConfirmDialog
        open={asking !== null}
        onOpenChange={(open) => {
          if (open) return
          verbs.synchronous.reset()
          setAsking(null)
        }}
        title={
          synchronous
            ? `Wait for ${standbysOf(synchronous.count)} instead of ${waiting.asked}?`
            : 'Stop waiting for standbys?'
        }
        confirmLabel={synchronous ? `Wait for ${standbysOf(synchronous.count)}` : 'Stop waiting'}
        danger
        busy={verbs.synchronous.isPending}
        {...refusalOf(verbs.synchronous.error)}
        onConfirm={() =>
          verbs.synchronous.mutate(
            {
              clusterId: cluster.clusterId,
              synchronous,
              commitMode: cluster.commitMode,
              idempotencyKey: newIdempotencyKey(),
            },
            { onSuccess: () => setAsking(null) },
          )
        }
      >
        {synchronous ? (
          <p>
            Commits that wait go through at once. From then on an acknowledged commit is on the primary and on{' '}
            {standbysOf(synchronous.count)}; it is lost only if all of these are.
          </p>
        ) : (
          <>
            <p>
              Waiting commits complete at once, and later commits wait for the primary’s own disk only. Choose
              the synchronous standbys again below once they are back.
            </p>
            <p>
              <span className="font-medium text-ink">May lose: </span>
              {commitModeWords.local.mayLose}
            </p>
          </>
        )}
      </ConfirmDialog>
    </>
  )
}

/** The same in short on a primary's other pages, with the way to what can be done. */
export function CommitsWaitNotice() {
  const { name, cluster } = useInstance()
  const isPrimary = cluster.memberRole === 'primary'
  const waiting = useCluster({ enabled: isPrimary && cluster.members > 1, everyMs: 3_000 }).data?.waiting
  if (!waiting || !isPrimary) return null
  return (
    <Alert
      tone="bad"
      title={titleOf(waiting)}
      actions={
        <Button asChild size="small">
          <Link href={`/instances/${name}/replication`}>Open replication</Link>
        </Button>
      }
    >
      {sessionsOf(waiting)}
    </Alert>
  )
}
