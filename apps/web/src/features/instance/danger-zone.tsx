'use client'
import { Card, Checkbox, ConfirmDialog, FaultAlert } from '@floe/ui'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useId, useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { Danger } from '../console/danger'
import { newIdempotencyKey } from '../console/idempotency-key'
import { refusalOf } from '../operation/refusal'
import { useInstance } from './instance-context'
import { useInstanceVerbs } from './use-instance-verbs'

type Asking = 'restart' | 'stop' | 'delete' | null

/** What interrupts or destroys; each asks first, and deleting wants the name typed. */
export function DangerZone() {
  const { instanceId, name, state, openOperation, cluster } = useInstance()
  const verbs = useInstanceVerbs(name)
  const router = useRouter()
  const mayChange = useMayChange()
  const keepId = useId()
  const [asking, setAsking] = useState<Asking>(null)
  const [keepFiles, setKeepFiles] = useState(false)
  const busy = openOperation !== null
  const title = mayChange ? (busy ? 'Another operation has not ended yet.' : undefined) : viewerHint
  const runs = state === 'running' || state === 'starting'
  const close = (open: boolean) => {
    if (open) return
    setAsking(null)
    for (const verb of [verbs.restart, verbs.stop, verbs.remove]) verb.reset()
  }
  const key = () => newIdempotencyKey()

  return (
    <Card title="Danger zone" className="border-bad/40" bodyClassName="p-0">
      <Danger
        title="Restart at once"
        button="Restart immediately"
        disabled={!mayChange || busy || !runs}
        hint={title ?? (runs ? undefined : 'It is not running.')}
        onPress={() => setAsking('restart')}
      >
        Ends every process without a checkpoint; the start recovers from the WAL. For an instance that does
        not respond to a normal restart.
      </Danger>
      <Danger
        title="Stop at once"
        button="Stop immediately"
        disabled={!mayChange || busy || !runs}
        hint={title ?? (runs ? undefined : 'It is not running.')}
        onPress={() => setAsking('stop')}
      >
        Ends every process without a checkpoint; the next start recovers from the WAL. Committed transactions
        are kept.
      </Danger>
      <DeletionProtection />
      <Danger
        title="Delete this instance"
        button="Delete instance"
        disabled={!mayChange || busy || cluster.deletionProtected}
        hint={title ?? (cluster.deletionProtected ? 'Deletion protection is on.' : undefined)}
        onPress={() => setAsking('delete')}
      >
        Stops it and removes its data directory from the host. This cannot be undone.
      </Danger>

      <ConfirmDialog
        open={asking === 'restart'}
        onOpenChange={close}
        title={`Restart ${name} immediately?`}
        confirmLabel="Restart immediately"
        danger
        busy={verbs.restart.isPending}
        {...refusalOf(verbs.restart.error)}
        onConfirm={() =>
          verbs.restart.mutate(
            { instanceId, mode: 'immediate', idempotencyKey: key() },
            { onSuccess: () => setAsking(null) },
          )
        }
      >
        <p>All sessions break off at once. Recovery may take a while; until then nobody can connect.</p>
      </ConfirmDialog>
      <ConfirmDialog
        open={asking === 'stop'}
        onOpenChange={close}
        title={`Stop ${name} immediately?`}
        confirmLabel="Stop immediately"
        danger
        busy={verbs.stop.isPending}
        {...refusalOf(verbs.stop.error)}
        onConfirm={() =>
          verbs.stop.mutate(
            { instanceId, mode: 'immediate', idempotencyKey: key() },
            { onSuccess: () => setAsking(null) },
          )
        }
      >
        <p>All sessions break off at once, and nobody can connect until it is started again.</p>
      </ConfirmDialog>
      <ConfirmDialog
        open={asking === 'delete'}
        onOpenChange={close}
        title={`Delete ${name}?`}
        confirmLabel="Delete instance"
        danger
        typedName={name}
        busy={verbs.remove.isPending}
        {...refusalOf(verbs.remove.error)}
        onConfirm={() =>
          verbs.remove.mutate(
            { instanceId, confirmName: name, keepFiles, idempotencyKey: key() },
            { onSuccess: ({ operationId }) => router.push(`/operations/${operationId}`) },
          )
        }
      >
        <p>
          {keepFiles
            ? 'The instance is stopped and removed from the console; its data directory is renamed and stays on the host.'
            : 'All its databases are lost and cannot be restored by Floe.'}
        </p>
        <div className="flex items-center gap-2">
          <Checkbox
            id={keepId}
            checked={keepFiles}
            onCheckedChange={(checked) => setKeepFiles(checked === true)}
          />
          <label htmlFor={keepId} className="text-ink">
            Keep the files: rename the data directory instead of removing it
          </label>
        </div>
      </ConfirmDialog>
    </Card>
  )
}

/** Of the whole cluster: its primary is its last copy, and no operation deletes that while it is protected. */
function DeletionProtection() {
  const { cluster } = useInstance()
  const trpc = useTRPC()
  const queries = useQueryClient()
  const mayChange = useMayChange()
  const change = useMutation(
    trpc.cluster.deletionProtection.mutationOptions({
      onSettled: () => void queries.invalidateQueries(trpc.instance.pathFilter()),
    }),
  )
  const on = cluster.deletionProtected
  const whole = cluster.members > 1 ? `cluster ${cluster.name}` : 'the instance'
  return (
    <>
      <Danger
        title={`Deletion protection is ${on ? 'on' : 'off'}`}
        button={on ? 'Turn off' : 'Turn on'}
        guards={!on}
        disabled={!mayChange || change.isPending}
        hint={mayChange ? undefined : viewerHint}
        onPress={() => change.mutate({ clusterId: cluster.clusterId, on: !on })}
      >
        {on
          ? `Nobody can delete ${whole} before it is turned off${cluster.members > 1 ? '; standbys can be removed' : ''}.`
          : `While it is on, nobody can delete ${whole}: not here, not on the command line, not by removing its host.`}
      </Danger>
      {change.error ? (
        <div className="px-4 pb-3">
          <FaultAlert fault={faultOf(change.error)} tone="bad" />
        </div>
      ) : null}
    </>
  )
}
