'use client'
import {
  Badge,
  Button,
  Card,
  Dialog,
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
import type { ClusterSettingRevision } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { useInstance } from '../instance/instance-context'
import { ClusterReview } from './cluster-review'

/** The revisions that all members together can be taken back to, with one press. */
export function ClusterSettingRevisions({ onApplied }: { onApplied: () => void }) {
  const { clusterId } = useInstance().cluster
  const trpc = useTRPC()
  const mayChange = useMayChange()
  const [chosen, setChosen] = useState<ClusterSettingRevision | null>(null)
  const query = useQuery(
    trpc.clusterSetting.revisions.queryOptions({ clusterId, limit: 50 }, { refetchInterval: 10_000 }),
  )
  const revisions = query.data?.revisions
  if (revisions?.length === 0) return null
  return (
    <Card
      title="Revisions"
      description="What Floe’s files held on the members after each operation. Rolling back takes all members back together, in the right order."
      bodyClassName="max-h-80 overflow-y-auto p-0"
    >
      {query.error && !revisions ? (
        <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} className="m-3" />
      ) : revisions === undefined ? (
        <SkeletonRows rows={3} label="Loading the revisions" />
      ) : (
        <Table label="Revisions of the cluster’s settings">
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
            {revisions.map((revision, i) => {
              const moves = revision.members.filter((m) => m.changes.length > 0)
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
                      <Badge tone="good">holds now</Badge>
                    ) : moves.length === 0 ? (
                      <span className="text-ink-muted">nothing: the same values</span>
                    ) : (
                      moves.map((m) => (
                        <p key={m.instanceId}>
                          {m.name}:{' '}
                          <code className="font-mono text-[13px]">
                            {m.changes.map((c) => `${c.name} = ${c.value ?? 'default'}`).join(', ')}
                          </code>
                        </p>
                      ))
                    )}
                  </TableCell>
                  <TableCell actions>
                    {i > 0 && moves.length > 0 ? (
                      <Button
                        size="small"
                        disabled={!mayChange}
                        title={mayChange ? undefined : viewerHint}
                        aria-label={`Roll back all members to the revision of ${new Date(revision.at).toISOString()}`}
                        onClick={() => setChosen(revision)}
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
      <Dialog
        open={chosen !== null}
        onOpenChange={(open) => {
          if (!open) setChosen(null)
        }}
        title="Roll back all members"
      >
        {chosen ? (
          <ClusterReview
            wanted={{ revisionId: chosen.revisionId }}
            onBack={() => setChosen(null)}
            onClose={() => setChosen(null)}
            onApplied={onApplied}
          />
        ) : null}
      </Dialog>
    </Card>
  )
}
