'use client'
import { exactBytes, fencedWords, formatDuration, shownRole, slotNameOf, standbySeenOf } from '@floe/domain'
import { Badge, classNames, StateBadge } from '@floe/ui'
import { ArrowRight, Database, ShieldAlert } from 'lucide-react'
import Link from 'next/link'
import type { Candidate, ClusterDetail, Member } from './use-cluster'

/** The cluster as a picture: the primary, an arrow for each member with how far it is, the members. */
export function Topology({ detail }: { detail: ClusterDetail }) {
  const { cluster, candidates } = detail
  const primary = cluster.members.find((m) => m.instanceId === cluster.primaryInstanceId)
  const others = cluster.members.filter((m) => m !== primary)
  return (
    <figure className="flex flex-col gap-3 p-4 lg:flex-row lg:items-center" aria-label="Topology">
      {primary ? <MemberBox member={primary} as="primary" /> : <p>The cluster has no primary.</p>}
      <ul className="flex min-w-0 flex-1 flex-col gap-3">
        {others.map((member) => (
          <li key={member.instanceId} className="flex flex-col gap-2 sm:flex-row sm:items-center">
            <Arrow
              primary={primary}
              member={member}
              candidate={candidates.failover.find((c) => c.instanceId === member.instanceId)}
            />
            <MemberBox member={member} as={member.memberRole} />
          </li>
        ))}
      </ul>
    </figure>
  )
}

function MemberBox({ member, as }: { member: Member; as: Member['memberRole'] }) {
  const old = member.hostState !== 'online'
  return (
    <div
      className={classNames(
        'flex min-w-0 flex-col gap-1 rounded-md border px-3 py-2 sm:w-64',
        as === 'primary' ? 'border-accent/50 bg-accent-soft' : 'border-line bg-surface',
        as === 'fenced' && 'border-bad/50',
        // text that is faded cannot be read by everybody
        old && 'border-dashed grayscale',
      )}
    >
      <span className="flex min-w-0 items-center gap-2">
        {as === 'fenced' ? (
          <ShieldAlert aria-hidden className="size-4 shrink-0 text-bad" />
        ) : (
          <Database aria-hidden className="size-4 shrink-0 text-ink-muted" />
        )}
        <Link
          href={`/instances/${member.name}/replication`}
          className="min-w-0 truncate font-medium hover:underline"
        >
          {member.name}
        </Link>
        <span className="ml-auto text-xs text-ink-muted">{as === 'primary' ? as : shownRole(member)}</span>
      </span>
      <span className="flex flex-wrap items-center gap-2 text-xs text-ink-muted">
        <StateBadge state={old ? member.hostState : member.state} of={old ? 'host' : 'instance'} />
        <span className="truncate">on {member.hostName}</span>
      </span>
      {old && member.ageMs !== null ? (
        <span className="text-xs text-ink-muted">last seen {formatDuration(member.ageMs)} ago</span>
      ) : null}
    </div>
  )
}

function Arrow({
  primary,
  member,
  candidate,
}: {
  primary: Member | undefined
  member: Member
  candidate: Candidate | undefined
}) {
  const seen = standbySeenOf(primary, member)
  // what a primary said that is not heard of any more is of then
  const old = primary?.hostState !== 'online'
  const streams = seen?.state === 'streaming' && !old
  const slot = primary?.replication?.slots.find((s) => s.name === slotNameOf(member.name))
  return (
    <div className="flex items-center gap-2 text-xs sm:w-72 sm:justify-end">
      <span className="flex flex-col sm:items-end">
        <span className="tabular-nums">
          {candidate?.lagBytes === null || candidate?.lagBytes === undefined
            ? 'lag unknown'
            : `${exactBytes(candidate.lagBytes)} behind`}
        </span>
        <span className="text-ink-muted">
          {seen
            ? `${old ? 'when last seen: ' : ''}${seen.state}, ${seen.syncState}`
            : member.memberRole === 'fenced'
              ? fencedWords(member)
              : 'not connected'}
          {slot && !slot.active && !seen ? ', its slot keeps WAL' : ''}
        </span>
      </span>
      {seen && (seen.syncState === 'sync' || seen.syncState === 'quorum') ? (
        <Badge tone={old ? 'neutral' : 'good'} title="Commits wait for it">
          sync
        </Badge>
      ) : null}
      <ArrowRight
        aria-hidden
        className={classNames(
          'size-5 shrink-0 rotate-90 sm:rotate-0',
          streams ? 'text-good' : 'text-ink-faint',
        )}
      />
    </div>
  )
}
