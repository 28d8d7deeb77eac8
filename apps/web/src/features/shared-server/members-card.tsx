import { type Fault, membersOfOneHost, sharedServerMembers, sharedServerWords, shownRole } from '@floe/domain'
import {
  Age,
  Alert,
  Badge,
  Card,
  Checkbox,
  FaultAlert,
  Skeleton,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import Link from 'next/link'
import { useId } from 'react'
import type { Member } from '../cluster/use-cluster'

/** What is known of a cluster's members; null before the first answer. */
export type MembersRead = {
  members: readonly Member[] | null
  /** So many are to be expected. */
  count: number
  /** When the console answered. */
  readAt: number | null
  /** Why it does not answer any more; what it said last may have changed. */
  fault: Fault | null
  retry: () => void
}

/** Where a cluster's clients find a shared port when another member is the primary, and whether changes are for all members. */
export function MembersCard({
  read: { members, count, readAt, fault, retry },
  everyMember,
  onEveryMember,
}: {
  read: MembersRead
  everyMember: boolean
  onEveryMember: (everyMember: boolean) => void
}) {
  const id = useId()
  const { missing, ports } = sharedServerMembers(members ?? [])
  const together = members && membersOfOneHost(members)
  const stale = fault !== null
  return (
    <Card
      title="Members"
      description={
        <>
          {stale && readAt !== null ? (
            <>
              Read <Age at={readAt} />, not known now.
            </>
          ) : (
            'As last seen.'
          )}{' '}
          Each member has a shared port of its own; clients need it at whichever is the primary.
        </>
      }
      actions={
        <span className={`flex items-center gap-2 text-sm ${members ? '' : 'opacity-55'}`}>
          <Checkbox
            id={id}
            disabled={members === null}
            checked={everyMember}
            onCheckedChange={(checked) => onEveryMember(checked === true)}
          />
          <label htmlFor={id}>Change every member</label>
        </span>
      }
      bodyClassName="p-0"
    >
      {fault ? (
        <div className="flex flex-col gap-3 p-3">
          {members ? null : (
            <p className="px-1 text-sm text-ink">
              The members are unknown. Shared Server cannot be turned on or off here until they are known: a
              change may be for all of them.
            </p>
          )}
          <FaultAlert fault={fault} onRetry={retry} tone="warn" />
        </div>
      ) : missing.length > 0 ? (
        <Alert tone="warn" className="m-3" title={`Not on: ${missing.join(', ')}`}>
          Sessions do not share backends there. If such a member becomes the primary, clients of the shared
          port have to connect at its other port.
        </Alert>
      ) : ports.length > 1 ? (
        <Alert tone="info" className="m-3" title={`The shared ports differ: ${ports.join(', ')}`}>
          A connection string that names every member needs the port of each.
        </Alert>
      ) : null}
      {members || !fault ? (
        <Table label="Shared Server by member">
          <TableHead>
            <tr>
              <TableHeader>Member</TableHeader>
              <TableHeader>Role</TableHeader>
              <TableHeader>Host</TableHeader>
              <TableHeader>Shared port</TableHeader>
              <TableHeader>State</TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {members?.map((m) => <MemberRow key={m.instanceId} member={m} stale={stale} />) ??
              Array.from({ length: count }, (_, i) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the shapes are all the same and never move
                <SkeletonRow key={i} />
              ))}
          </TableBody>
        </Table>
      ) : null}
      {members ? null : fault ? null : (
        <span role="status" className="sr-only">
          Reading the members
        </span>
      )}
      {together ? (
        <p className="border-t border-line px-4 py-3 text-sm text-ink-muted">
          {together.map((m) => m.name).join(' and ')} are on host {together[0].hostName}, where each needs a
          port of its own: open it on each.
        </p>
      ) : null}
    </Card>
  )
}

function MemberRow({ member: m, stale }: { member: Member; stale: boolean }) {
  return (
    <TableRow>
      <TableCell>
        <Link href={`/instances/${m.name}/connections`} className="font-medium text-accent hover:underline">
          {m.name}
        </Link>
      </TableCell>
      <TableCell>{shownRole(m)}</TableCell>
      <TableCell>{m.hostName}</TableCell>
      <TableCell className="font-mono">{m.sharedServer?.port ?? '–'}</TableCell>
      <TableCell>
        <State member={m} stale={stale} />
      </TableCell>
    </TableRow>
  )
}

/** As high as a row with a badge, so that nothing moves when the members are known. */
function SkeletonRow() {
  return (
    <TableRow>
      {['w-20', 'w-16', 'w-16', 'w-12', 'w-10'].map((width, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a column each
        <TableCell key={i} className="h-9">
          <Skeleton className={`h-4 ${width}`} />
        </TableCell>
      ))}
    </TableRow>
  )
}

function State({ member: { sharedServer, state }, stale }: { member: Member; stale: boolean }) {
  const { title, tone } =
    state !== 'running'
      ? { title: state === 'unknown' ? 'Unknown' : `Instance ${state}`, tone: 'neutral' as const }
      : sharedServer
        ? sharedServerWords(sharedServer)
        : { title: 'Unknown', tone: 'neutral' as const }
  // what was last seen is not what is
  return <Badge tone={stale ? 'neutral' : tone}>{stale ? `${title} when last seen` : title}</Badge>
}
