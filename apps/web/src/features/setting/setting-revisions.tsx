'use client'
import type { SettingScope } from '@floe/domain'
import {
  Badge,
  Button,
  Card,
  FaultAlert,
  Moment,
  SkeletonRows,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useQuery } from '@tanstack/react-query'
import { Undo2 } from 'lucide-react'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import type { Wanted } from './review'

/** What Floe’s files held after each change: every one of them can be rolled back to as a whole, on all members together. */
export function SettingRevisions({
  scope,
  onRollBack,
}: {
  scope: SettingScope
  onRollBack: (wanted: Wanted) => void
}) {
  const trpc = useTRPC()
  const mayChange = useMayChange()
  const query = useQuery(
    trpc.setting.revisions.queryOptions({ scope, limit: 100 }, { refetchInterval: 10_000 }),
  )
  const revisions = query.data?.revisions
  const several = (query.data?.members.length ?? 0) > 1
  if (revisions?.length === 0) return null
  return (
    <Card
      title="Revisions"
      description={`${
        several
          ? 'What Floe’s files of settings held on the members after each change. Rolling back changes all members together, in the right order.'
          : 'What Floe’s file of settings held after each change.'
      } Rolling back is a change like any other: it is checked, confirmed, and can be rolled back itself.`}
      className="mb-3"
      bodyClassName="max-h-80 overflow-y-auto p-0"
    >
      {query.error && !revisions ? (
        <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} className="m-3" />
      ) : revisions === undefined ? (
        <SkeletonRows rows={3} label="Loading the revisions" />
      ) : (
        <Table label="Revisions of the settings">
          <TableHead>
            <tr>
              <TableHeader>Since</TableHeader>
              <TableHeader>Who</TableHeader>
              <TableHeader>Why</TableHeader>
              <TableHeader>Rolling back changes</TableHeader>
              <TableHeader actions>
                <span className="sr-only">Roll back</span>
              </TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {revisions.map((revision, i) => {
              const moves = revision.members.filter((m) => m.changes.length > 0)
              const back = i > 0 && moves.length > 0
              return (
                <TableRow key={revision.revisionId}>
                  <TableCell>
                    <Moment at={revision.at} />
                  </TableCell>
                  <TableCell>{revision.actorName}</TableCell>
                  <TableCell className="max-w-64 break-words text-ink-muted">
                    {revision.reason ?? '–'}
                  </TableCell>
                  <TableCell className="max-w-md break-words">
                    {i === 0 ? (
                      <Badge tone="good">current</Badge>
                    ) : !back ? (
                      <span className="text-ink-muted">nothing: the same values</span>
                    ) : (
                      moves.map((m) => (
                        <p key={m.instanceId}>
                          {several ? `${m.name}: ` : ''}
                          <code className="font-mono text-[13px]">
                            {m.changes.map((c) => `${c.name} = ${c.value ?? 'default'}`).join(', ')}
                          </code>
                        </p>
                      ))
                    )}
                  </TableCell>
                  <TableCell actions>
                    {back ? (
                      <Button
                        size="small"
                        disabled={!mayChange}
                        title={mayChange ? undefined : viewerHint}
                        aria-label={`Roll back ${several ? 'all members ' : ''}to the revision of ${new Date(revision.at).toISOString()}`}
                        onClick={() => onRollBack({ revisionId: revision.revisionId })}
                      >
                        <Undo2 aria-hidden />
                        Roll back
                      </Button>
                    ) : null}
                  </TableCell>
                </TableRow>
              )
            })}
          </TableBody>
        </Table>
      )}
    </Card>
  )
}
