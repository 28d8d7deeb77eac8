import { membersOfOneHost, sharedServerMembers, sharedServerWords } from '@floe/domain'
import {
  Alert,
  Badge,
  Card,
  Checkbox,
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

/** Where a cluster's clients find a shared port when another member is the primary, and whether changes are for all members. */
export function MembersCard({
  members,
  everyMember,
  onEveryMember,
}: {
  members: readonly Member[]
  everyMember: boolean
  onEveryMember: (everyMember: boolean) => void
}) {
  const id = useId()
  const { missing, ports } = sharedServerMembers(members)
  const together = membersOfOneHost(members)
  return (
    <Card
      title="Members"
      description="As last seen. Each member has a shared port of its own; clients need it at whichever is the primary."
      actions={
        <span className="flex items-center gap-2 text-sm">
          <Checkbox
            id={id}
            checked={everyMember}
            onCheckedChange={(checked) => onEveryMember(checked === true)}
          />
          <label htmlFor={id}>Change every member</label>
        </span>
      }
      bodyClassName="p-0"
    >
      {missing.length > 0 ? (
        <Alert tone="warn" className="m-3" title={`Not on: ${missing.join(', ')}`}>
          Sessions do not share backends there. If such a member becomes the primary, clients of the shared
          port have to come in by its other one.
        </Alert>
      ) : ports.length > 1 ? (
        <Alert tone="info" className="m-3" title={`The shared ports differ: ${ports.join(', ')}`}>
          A connection string that names every member needs the port of each.
        </Alert>
      ) : null}
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
          {members.map((m) => (
            <TableRow key={m.instanceId}>
              <TableCell>
                <Link
                  href={`/instances/${m.name}/connections`}
                  className="font-medium text-accent hover:underline"
                >
                  {m.name}
                </Link>
              </TableCell>
              <TableCell>{m.memberRole}</TableCell>
              <TableCell>{m.hostName}</TableCell>
              <TableCell className="font-mono">{m.sharedServer?.port ?? '–'}</TableCell>
              <TableCell>
                <State member={m} />
              </TableCell>
            </TableRow>
          ))}
        </TableBody>
      </Table>
      {together ? (
        <p className="border-t border-line px-4 py-3 text-sm text-ink-muted">
          {together.map((m) => m.name).join(' and ')} are on host {together[0].hostName}, where each needs a
          port of its own: open it on each.
        </p>
      ) : null}
    </Card>
  )
}

function State({ member: { sharedServer, state } }: { member: Member }) {
  if (state !== 'running')
    return <Badge tone="neutral">{state === 'unknown' ? 'Unknown' : `It is ${state}`}</Badge>
  if (!sharedServer) return <Badge tone="neutral">Unknown</Badge>
  const { title, tone } = sharedServerWords(sharedServer)
  return <Badge tone={tone}>{title}</Badge>
}
