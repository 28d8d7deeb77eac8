'use client'
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
import { useState } from 'react'
import type { RouterOutputs, SettingView } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { useInstance } from '../instance/instance-context'
import type { ConfirmedChanges } from './confirmed-changes'
import { ReviewDialog } from './review-dialog'

type Revision = RouterOutputs['setting']['revisions']['revisions'][number]

/** What Floe’s file held after each change: every one of them can be gone back to as a whole. */
export function SettingRevisions({
  settings,
  onApplied,
}: {
  settings: readonly SettingView[]
  onApplied: (changes: ConfirmedChanges) => void
}) {
  const { instanceId } = useInstance()
  const trpc = useTRPC()
  const mayChange = useMayChange()
  const query = useQuery(
    trpc.setting.revisions.queryOptions({ instanceId, limit: 100 }, { refetchInterval: 10_000 }),
  )
  const [chosen, setChosen] = useState<Revision | null>(null)
  const revisions = query.data?.revisions
  if (revisions?.length === 0) return null
  return (
    <Card
      title="Revisions"
      description="What Floe’s file of settings held after each change. Rolling back is a change like any other: it is checked, confirmed, and can be rolled back itself."
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
              <TableHeader>Going back changes</TableHeader>
              <TableHeader actions>
                <span className="sr-only">Roll back</span>
              </TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {revisions.map((revision, i) => (
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
                    <Badge tone="good">holds now</Badge>
                  ) : revision.changes.length === 0 ? (
                    <span className="text-ink-muted">nothing: the same values</span>
                  ) : (
                    <code className="font-mono text-[13px]">
                      {revision.changes.map((c) => `${c.name} = ${c.value ?? 'default'}`).join(', ')}
                    </code>
                  )}
                </TableCell>
                <TableCell actions>
                  {i > 0 && revision.changes.length > 0 ? (
                    <Button
                      size="small"
                      disabled={!mayChange}
                      title={mayChange ? undefined : viewerHint}
                      aria-label={`Roll back to the revision of ${new Date(revision.at).toISOString()}`}
                      onClick={() => setChosen(revision)}
                    >
                      <Undo2 aria-hidden />
                      Roll back
                    </Button>
                  ) : null}
                </TableCell>
              </TableRow>
            ))}
          </TableBody>
        </Table>
      )}
      <ReviewDialog
        instanceId={instanceId}
        changes={chosen?.changes ?? null}
        revisionId={chosen?.revisionId}
        settings={settings}
        onClose={() => setChosen(null)}
        onApplied={onApplied}
      />
    </Card>
  )
}
