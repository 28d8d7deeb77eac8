'use client'
import { exactBytes, formatBytes, slotNameOf, standbySeenOf } from '@floe/domain'
import {
  Alert,
  Button,
  ConfirmDialog,
  Field,
  Input,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useState } from 'react'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { refusalOf } from '../operation/refusal'
import { replayLagWords } from './replay-lag'
import { type ClusterDetail, type Member, useClusterVerbs } from './use-cluster'

type Asking = { verb: 'remove' | 'promote' | 'rejoin' | 'reclone'; member: Member } | null

/** Each member's positions as the primary sees them, lag in bytes and seconds, slot, and what can be done with it. */
export function MemberTable({ detail }: { detail: ClusterDetail }) {
  const { cluster, candidates } = detail
  const primary = cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
  const standbys = cluster.members.filter((m) => m !== primary)
  const [asking, setAsking] = useState<Asking>(null)
  const mayChange = useMayChange()
  const hint = mayChange
    ? detail.openOperation
      ? 'Another operation has not ended yet.'
      : undefined
    : viewerHint
  const off = !mayChange || detail.openOperation !== null
  return (
    <>
      <Table label={`Standbys of ${cluster.name}`}>
        <TableHead>
          <tr>
            <TableHeader>Standby</TableHeader>
            <TableHeader>Sent</TableHeader>
            <TableHeader>Written</TableHeader>
            <TableHeader>Flushed</TableHeader>
            <TableHeader>Replayed</TableHeader>
            <TableHeader number>Behind</TableHeader>
            <TableHeader number>Replay lag</TableHeader>
            <TableHeader>Sync</TableHeader>
            <TableHeader>Slot</TableHeader>
            <TableHeader>
              <span className="sr-only">What can be done</span>
            </TableHeader>
          </tr>
        </TableHead>
        <TableBody>
          {standbys.map((m) => {
            const seen = standbySeenOf(primary, m)
            const slot = primary?.replication?.slots.find((s) => s.name === slotNameOf(m.name))
            const lag = candidates.failover.find((c) => c.instanceId === m.instanceId)?.lagBytes
            const position = (lsn: string | null | undefined) => (
              <TableCell className="font-mono text-xs whitespace-nowrap">{lsn ?? '–'}</TableCell>
            )
            return (
              <TableRow key={m.instanceId}>
                <TableCell className="whitespace-nowrap">{m.name}</TableCell>
                {position(seen?.sentLsn)}
                {position(seen?.writtenLsn)}
                {position(seen?.flushedLsn)}
                {position(seen?.replayedLsn)}
                <TableCell number className="whitespace-nowrap">
                  {lag === null || lag === undefined ? '–' : exactBytes(lag)}
                </TableCell>
                <TableCell number className="whitespace-nowrap">
                  {replayLagWords(seen, primary?.replication?.endLsn)}
                </TableCell>
                <TableCell>{seen?.syncState ?? '–'}</TableCell>
                <TableCell className="whitespace-nowrap">
                  {slot
                    ? `${slot.active ? 'active' : 'inactive'}${slot.retainedBytes === null ? '' : `, keeps ${formatBytes(slot.retainedBytes)}`}`
                    : 'none'}
                </TableCell>
                <TableCell>
                  <div className="flex justify-end gap-1.5">
                    {m.memberRole === 'fenced' || seen?.state !== 'streaming' ? (
                      <Button
                        size="small"
                        disabled={off}
                        title={hint}
                        onClick={() => setAsking({ verb: 'rejoin', member: m })}
                      >
                        Rejoin
                      </Button>
                    ) : null}
                    <Button
                      size="small"
                      disabled={off}
                      title={hint}
                      onClick={() => setAsking({ verb: 'reclone', member: m })}
                    >
                      Copy anew
                    </Button>
                    <Button
                      size="small"
                      disabled={off || m.role !== 'standby'}
                      title={hint}
                      onClick={() => setAsking({ verb: 'promote', member: m })}
                    >
                      Promote
                    </Button>
                    <Button
                      size="small"
                      variant="danger-quiet"
                      disabled={off}
                      title={hint}
                      onClick={() => setAsking({ verb: 'remove', member: m })}
                    >
                      Remove
                    </Button>
                  </div>
                </TableCell>
              </TableRow>
            )
          })}
        </TableBody>
      </Table>
      <Asked asking={asking} onClose={() => setAsking(null)} />
    </>
  )
}

const questions = {
  rejoin: {
    title: (name: string) => `Rejoin ${name}?`,
    label: 'Rejoin',
    text: 'It is stopped, taken back to where it left the primary’s history by pg_rewind where that is allowed, else copied anew, and follows the primary. What only it had written is lost.',
    typed: false,
  },
  reclone: {
    title: (name: string) => `Copy ${name} anew?`,
    label: 'Copy anew',
    text: 'It is stopped and replaced by a new copy of the primary. Its former data is kept until the copy is whole.',
    typed: false,
  },
  promote: {
    title: (name: string) => `Make ${name} a cluster of its own?`,
    label: 'Promote',
    text: 'It leaves this cluster and accepts writes of its own from then on. To let it take over, switch over instead.',
    typed: true,
  },
  remove: {
    title: (name: string) => `Remove ${name}?`,
    label: 'Remove standby',
    text: 'It is stopped, its files are deleted, and its slot and role on the primary are dropped. If it is the last source of torn pages and full_page_writes is off, the guard has page images written from then on.',
    typed: true,
  },
} as const

function Asked({ asking, onClose }: { asking: Asking; onClose: () => void }) {
  const verbs = useClusterVerbs()
  const verb = asking ? verbs[asking.verb] : null
  const question = asking ? questions[asking.verb] : null
  const name = asking?.member.name ?? ''
  const [host, setHost] = useState('')
  // its host does not answer: a removal waits for it, or is typed to do without
  const silent = asking?.verb === 'remove' && asking.member.hostState !== 'online' ? asking.member : null
  const close = () => {
    setHost('')
    onClose()
  }
  return (
    <ConfirmDialog
      open={asking !== null}
      onOpenChange={(open) => {
        if (open) return
        verb?.reset()
        close()
      }}
      title={question?.title(name) ?? ''}
      confirmLabel={question?.label ?? ''}
      danger
      {...(question?.typed ? { typedName: name } : {})}
      busy={verb?.isPending ?? false}
      {...refusalOf(verb?.error)}
      onConfirm={() => {
        if (!asking) return
        const { instanceId } = asking.member
        const more = { instanceId, idempotencyKey: newIdempotencyKey() }
        const done = { onSuccess: close }
        switch (asking.verb) {
          case 'remove':
            return verbs.remove.mutate(
              { ...more, confirmName: name, unreachableHost: silent && host !== '' ? host : null },
              done,
            )
          case 'promote':
            return verbs.promote.mutate({ ...more, confirmName: name }, done)
          case 'rejoin':
            return verbs.rejoin.mutate(more, done)
          case 'reclone':
            return verbs.reclone.mutate(more, done)
        }
      }}
    >
      <div className="flex flex-col gap-3">
        <p>{question?.text}</p>
        {silent ? (
          <Alert tone="bad" title={`Host "${silent.hostName}" does not answer`}>
            <p>
              The removal waits until it does. With its name typed the standby leaves the cluster at once, its
              slot keeps no more WAL, and what lies on the host is left there. Should the host come back, it
              is fenced, and an incident tells of it.
            </p>
            <Field label={`Type "${silent.hostName}" to remove it without its host`}>
              {(control) => (
                <Input {...control} value={host} onChange={(event) => setHost(event.target.value)} />
              )}
            </Field>
          </Alert>
        ) : null}
      </div>
    </ConfirmDialog>
  )
}
