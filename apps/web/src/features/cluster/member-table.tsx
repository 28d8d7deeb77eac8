'use client'
import { exactBytes, formatBytes, slotNameOf, standbySeenOf } from '@floe/domain'
import {
  Alert,
  Button,
  ConfirmDialog,
  classNames,
  Field,
  Input,
  KeyValue,
  Menu,
  MenuItem,
  MenuSeparator,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { ArrowUpFromLine, ChevronRight, CopyPlus, EllipsisVertical, Trash2 } from 'lucide-react'
import { useSearchParams } from 'next/navigation'
import { useState } from 'react'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { REJOIN } from '../console/page-addresses'
import { refusalOf } from '../operation/refusal'
import { replayLagWords } from './replay-lag'
import { type ClusterDetail, type Member, useClusterVerbs } from './use-cluster'

type Asking = { verb: 'remove' | 'promote' | 'rejoin' | 'reclone'; member: Member } | null

/** Each standby's lag in bytes and seconds, slot, and actions; its positions as the primary sees them on demand. */
export function MemberTable({ detail }: { detail: ClusterDetail }) {
  const { cluster, candidates } = detail
  const primary = cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
  const standbys = cluster.members.filter((m) => m !== primary)
  const wanted = useSearchParams().get(REJOIN)
  const rejoining = standbys.find((m) => m.name === wanted)
  const [asking, setAsking] = useState<Asking>(rejoining ? { verb: 'rejoin', member: rejoining } : null)
  const [positionsOf, setPositionsOf] = useState<string | null>(null)
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
            <TableHeader number>Behind</TableHeader>
            <TableHeader number>Replay lag</TableHeader>
            <TableHeader>Sync</TableHeader>
            <TableHeader>Slot</TableHeader>
            <TableHeader actions>
              <span className="sr-only">Actions</span>
            </TableHeader>
          </tr>
        </TableHead>
        <TableBody>
          {standbys.map((m) => {
            const seen = standbySeenOf(primary, m)
            const slot = primary?.replication?.slots.find((s) => s.name === slotNameOf(m.name))
            const lag = candidates.failover.find((c) => c.instanceId === m.instanceId)?.lagBytes
            const showsPositions = positionsOf === m.instanceId
            return [
              <TableRow key={m.instanceId}>
                <TableCell className="whitespace-nowrap">
                  <button
                    type="button"
                    aria-expanded={showsPositions}
                    title="WAL positions"
                    onClick={() => setPositionsOf(showsPositions ? null : m.instanceId)}
                    className="inline-flex items-center gap-1 rounded-sm hover:text-accent"
                  >
                    <ChevronRight
                      aria-hidden
                      className={classNames('size-3.5 text-ink-muted', showsPositions && 'rotate-90')}
                    />
                    {m.name}
                  </button>
                </TableCell>
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
                <TableCell actions>
                  <span className="inline-flex items-center gap-1.5">
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
                    <Menu
                      trigger={
                        <Button
                          size="icon-small"
                          variant="quiet"
                          aria-label={`More actions for ${m.name}`}
                          title={hint ?? 'More actions'}
                        >
                          <EllipsisVertical aria-hidden />
                        </Button>
                      }
                    >
                      <MenuItem disabled={off} onSelect={() => setAsking({ verb: 'reclone', member: m })}>
                        <CopyPlus aria-hidden />
                        Rebuild
                      </MenuItem>
                      <MenuItem
                        disabled={off || m.role !== 'standby'}
                        onSelect={() => setAsking({ verb: 'promote', member: m })}
                      >
                        <ArrowUpFromLine aria-hidden />
                        Promote
                      </MenuItem>
                      <MenuSeparator />
                      <MenuItem
                        danger
                        disabled={off}
                        onSelect={() => setAsking({ verb: 'remove', member: m })}
                      >
                        <Trash2 aria-hidden />
                        Remove
                      </MenuItem>
                    </Menu>
                  </span>
                </TableCell>
              </TableRow>,
              showsPositions ? (
                <TableRow key={`${m.instanceId} positions`}>
                  <td colSpan={6} className="bg-sunken/40 px-4 py-2">
                    <KeyValue
                      items={[
                        { label: 'Sent', value: lsn(seen?.sentLsn) },
                        { label: 'Written', value: lsn(seen?.writtenLsn) },
                        { label: 'Flushed', value: lsn(seen?.flushedLsn) },
                        { label: 'Replayed', value: lsn(seen?.replayedLsn) },
                      ]}
                    />
                  </td>
                </TableRow>
              ) : null,
            ]
          })}
        </TableBody>
      </Table>
      <Asked asking={asking} onClose={() => setAsking(null)} />
    </>
  )
}

const lsn = (position: string | null | undefined) => (
  <span className="font-mono text-xs">{position ?? '–'}</span>
)

const questions = {
  rejoin: {
    title: (name: string) => `Rejoin ${name}?`,
    label: 'Rejoin',
    text: 'The member is stopped, rewound by pg_rewind to the point where it diverged (or rebuilt from a new copy if that is not possible), and follows the primary. WAL that only it has is first kept aside on its host, and counted.',
    typed: false,
  },
  reclone: {
    title: (name: string) => `Rebuild ${name}?`,
    label: 'Rebuild',
    text: 'The member is stopped and replaced by a new copy of the primary. Its former data is kept until the copy is complete; WAL that only it has is kept aside on its host, and counted.',
    typed: false,
  },
  promote: {
    title: (name: string) => `Make ${name} a cluster of its own?`,
    label: 'Promote',
    text: 'The standby leaves this cluster and then accepts writes of its own. To let it take over, switch over instead.',
    typed: true,
  },
  remove: {
    title: (name: string) => `Remove ${name}?`,
    label: 'Remove standby',
    text: 'The standby is stopped, its files are deleted, and its slot and role on the primary are dropped. If it is the last page repair source and full_page_writes is off, the guard re-enables full-page images.',
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
              The removal waits until it does. If you type its name, the standby leaves the cluster at once,
              its slot is dropped, and its files stay on the host. If the host returns, the instance is fenced
              and an incident opens.
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
