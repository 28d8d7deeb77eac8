'use client'
import { type CommandKind, commandKindsThat, operationRecords } from '@floe/domain'
import { Button, ConfirmDialog, Menu, MenuItem } from '@floe/ui'
import { EllipsisVertical, GitMerge, Hammer, Play, RefreshCw, RotateCw, Square } from 'lucide-react'
import Link from 'next/link'
import { useState } from 'react'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { rejoinAddress } from '../console/page-addresses'
import { OrderDialog } from '../operation/order-dialog'
import { refusalOf } from '../operation/refusal'
import { useRefusalToast } from '../operation/use-refusal-toast'
import { useInstance } from './instance-context'
import { useInstanceVerbs } from './use-instance-verbs'

/** What a record puts into the menu of an instance that runs. */
const inMenu = (memberRole: string) =>
  commandKindsThat(({ menu }) => menu === 'member' || (menu === 'primary' && memberRole === 'primary'))

/** Start, stop, restart, reload, and what records put into the menu; what interrupts clients asks first. */
export function InstanceActions() {
  const { instanceId, name, state, cluster, openOperation } = useInstance()
  const verbs = useInstanceVerbs(name)
  const refused = useRefusalToast()
  const mayChange = useMayChange()
  const [asking, setAsking] = useState<'stop' | 'restart' | null>(null)
  const [ordering, setOrdering] = useState<CommandKind | null>(null)
  const busy = openOperation !== null
  const disabled = !mayChange || busy
  const title = mayChange
    ? busy
      ? 'Another operation of this instance has not ended yet.'
      : undefined
    : viewerHint
  const down = state === 'stopped' || state === 'crashed'
  // its agent refuses to start one: it comes back as a standby
  const fenced = cluster.memberRole === 'fenced'
  // one whose postmaster has ended while processes work on is stopping though nobody ordered it
  const canStop = state === 'running' || state === 'starting' || (state === 'stopping' && !busy)
  const verb = asking === 'stop' ? verbs.stop : verbs.restart
  const hanging = openOperation?.kind === 'stop-instance' || openOperation?.kind === 'restart-instance'
  return (
    <>
      {fenced && down && !disabled ? (
        <Button asChild variant="primary">
          <Link href={rejoinAddress(name)}>
            <GitMerge aria-hidden />
            Rejoin
          </Link>
        </Button>
      ) : null}
      {down && !fenced ? (
        <Button
          variant="primary"
          disabled={disabled}
          title={title}
          busy={verbs.start.isPending}
          onClick={() =>
            verbs.start.mutate({ instanceId, idempotencyKey: newIdempotencyKey() }, { onError: refused })
          }
        >
          <Play aria-hidden />
          Start
        </Button>
      ) : null}
      {canStop ? (
        <>
          <Button disabled={disabled} title={title} onClick={() => setAsking('restart')}>
            <RotateCw aria-hidden />
            Restart
          </Button>
          <Button disabled={disabled} title={title} onClick={() => setAsking('stop')}>
            <Square aria-hidden />
            Stop
          </Button>
          <Menu
            trigger={
              <Button size="icon" variant="quiet" aria-label="More actions" title="More actions">
                <EllipsisVertical aria-hidden />
              </Button>
            }
          >
            <MenuItem
              disabled={disabled}
              onSelect={() =>
                verbs.reload.mutate({ instanceId, idempotencyKey: newIdempotencyKey() }, { onError: refused })
              }
            >
              <RefreshCw aria-hidden />
              Reload settings
            </MenuItem>
            {inMenu(cluster.memberRole).map((kind) => (
              <MenuItem key={kind} disabled={disabled} onSelect={() => setOrdering(kind)}>
                <Hammer aria-hidden />
                {operationRecords[kind].title}
              </MenuItem>
            ))}
          </Menu>
        </>
      ) : null}
      {ordering ? (
        <OrderDialog
          kind={ordering}
          instanceId={instanceId}
          name={name}
          open
          onOpenChange={(open) => (open ? undefined : setOrdering(null))}
        />
      ) : null}
      {hanging && state === 'stopping' ? <StopNow kind={openOperation.kind} /> : null}
      <ConfirmDialog
        open={asking !== null}
        onOpenChange={(open) => {
          if (open) return
          setAsking(null)
          verbs.stop.reset()
          verbs.restart.reset()
        }}
        title={`${asking === 'stop' ? 'Stop' : 'Restart'} ${name}?`}
        confirmLabel={asking === 'stop' ? 'Stop' : 'Restart'}
        danger={asking === 'stop'}
        busy={verb.isPending}
        {...refusalOf(verb.error)}
        onConfirm={() =>
          verb.mutate(
            { instanceId, mode: 'fast', idempotencyKey: newIdempotencyKey() },
            { onSuccess: () => setAsking(null) },
          )
        }
      >
        <p>
          A fast {asking === 'stop' ? 'shutdown' : 'restart'} ends all sessions, rolls back their open
          transactions and writes a checkpoint. Committed transactions are kept.
        </p>
        {asking === 'stop' ? (
          <p>Clients cannot connect until it is started again.</p>
        ) : (
          <p>Clients have to connect again; settings that wait for a restart take effect.</p>
        )}
      </ConfirmDialog>
    </>
  )
}

/** For a shutdown that takes too long: the same operation, at once. */
function StopNow({ kind }: { kind: string }) {
  const { instanceId, name } = useInstance()
  const verbs = useInstanceVerbs(name)
  const mayChange = useMayChange()
  const [asking, setAsking] = useState(false)
  const verb = kind === 'restart-instance' ? verbs.restart : verbs.stop
  const word = kind === 'restart-instance' ? 'Restart' : 'Stop'
  return (
    <>
      <Button
        variant="danger-quiet"
        disabled={!mayChange}
        title={mayChange ? undefined : viewerHint}
        onClick={() => setAsking(true)}
      >
        <Square aria-hidden />
        {word} at once
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={(open) => {
          setAsking(open)
          verb.reset()
        }}
        title={`${word} ${name} at once?`}
        confirmLabel={`${word} at once`}
        danger
        busy={verb.isPending}
        {...refusalOf(verb.error)}
        onConfirm={() =>
          verb.mutate(
            { instanceId, mode: 'immediate', idempotencyKey: newIdempotencyKey() },
            { onSuccess: () => setAsking(false) },
          )
        }
      >
        <p>
          The shutdown in progress is escalated to an immediate one: the engine ends without writing a
          checkpoint. Committed transactions are kept; the next start recovers them from the WAL.
        </p>
      </ConfirmDialog>
    </>
  )
}
