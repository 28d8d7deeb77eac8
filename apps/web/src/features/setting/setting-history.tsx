'use client'
import type { SettingScope } from '@floe/domain'
import {
  Badge,
  Button,
  Card,
  EmptyState,
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
import { History, Undo2 } from 'lucide-react'
import { useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { OperationLink } from '../operation/operation-link'
import { ConfirmedAlert, type ConfirmedChanges } from './confirmed-changes'
import { OldToNew } from './old-to-new'
import { ReviewDialog, type Wanted } from './review'
import { SettingRevisions } from './setting-revisions'
import { useSettings } from './use-settings'

/** The revisions of settings, and who changed which one when, old → new, as it was confirmed; each can be rolled back. */
export function SettingHistory({ scope }: { scope: SettingScope }) {
  const trpc = useTRPC()
  const mayChange = useMayChange()
  const query = useQuery(
    trpc.setting.history.queryOptions({ scope, limit: 200 }, { refetchInterval: 10_000 }),
  )
  const { settings, refresh } = useSettings(scope)
  const [applied, setApplied] = useState<ConfirmedChanges | null>(null)
  const [reviewing, setReviewing] = useState<Wanted | null>(null)
  const changes = query.data?.changes
  const several = (query.data?.members.length ?? 0) > 1
  return (
    <>
      <ConfirmedAlert changes={applied} />
      <SettingRevisions scope={scope} onRollBack={setReviewing} />
      <Card
        title="History"
        description={`Changes made through Floe, as ${several ? 'each member' : 'the instance'} confirmed them.`}
        bodyClassName="max-h-[32rem] overflow-y-auto p-0"
      >
        {query.error && !changes ? (
          <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} className="m-3" />
        ) : changes === undefined ? (
          <SkeletonRows label="Loading the history" />
        ) : changes.length === 0 ? (
          <EmptyState icon={History} title="No setting has been changed yet">
            Every change is kept with who made it, when, and both values.
          </EmptyState>
        ) : (
          <Table label="History of settings">
            <TableHead>
              <tr>
                <TableHeader>When</TableHeader>
                {several ? <TableHeader>Member</TableHeader> : null}
                <TableHeader>Setting</TableHeader>
                <TableHeader>Old → new</TableHeader>
                <TableHeader>Who</TableHeader>
                <TableHeader>Why</TableHeader>
                <TableHeader>Operation</TableHeader>
                <TableHeader actions>
                  <span className="sr-only">Roll back</span>
                </TableHeader>
              </tr>
            </TableHead>
            <TableBody>
              {changes.map((entry) => {
                const back = `${entry.name}${several ? ' on all members' : ''} to ${entry.oldValue ?? 'its default'}`
                return (
                  <TableRow key={`${entry.operationId} ${entry.instanceId} ${entry.name}`}>
                    <TableCell>
                      <Moment at={entry.at} />
                    </TableCell>
                    {several ? (
                      <TableCell className="whitespace-nowrap">{entry.instanceName}</TableCell>
                    ) : null}
                    <TableCell className="font-mono">{entry.name}</TableCell>
                    <TableCell>
                      <OldToNew
                        from={entry.oldValue ?? 'default'}
                        to={entry.newValue ?? 'default'}
                        arrow="became"
                      >
                        {entry.pendingRestart ? <Badge tone="warn">in force after a restart</Badge> : null}
                      </OldToNew>
                    </TableCell>
                    <TableCell>{entry.actorName}</TableCell>
                    <TableCell className="max-w-64 break-words text-ink-muted">
                      {entry.reason ?? '–'}
                    </TableCell>
                    <TableCell>
                      <OperationLink operationId={entry.operationId}>Open</OperationLink>
                    </TableCell>
                    <TableCell actions>
                      <Button
                        size="small"
                        disabled={!mayChange}
                        title={mayChange ? `Roll back ${back}` : viewerHint}
                        aria-label={`Roll back ${back}`}
                        onClick={() =>
                          setReviewing({ changes: [{ name: entry.name, value: entry.oldValue }] })
                        }
                      >
                        <Undo2 aria-hidden />
                        Roll back
                      </Button>
                    </TableCell>
                  </TableRow>
                )
              })}
            </TableBody>
          </Table>
        )}
      </Card>
      <ReviewDialog
        scope={scope}
        wanted={reviewing}
        settings={settings ?? []}
        onClose={() => setReviewing(null)}
        onApplied={(confirmed) => {
          setApplied(confirmed)
          refresh()
        }}
      />
    </>
  )
}
