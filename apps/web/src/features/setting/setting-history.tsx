'use client'
import type { SettingChange } from '@floe/domain'
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
import { ArrowRight, History, Undo2 } from 'lucide-react'
import { useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { useInstance } from '../instance/instance-context'
import { OperationLink } from '../operation/operation-link'
import { ConfirmedAlert, type ConfirmedChanges } from './confirmed-changes'
import { ReviewDialog } from './review-dialog'
import { SettingRevisions } from './setting-revisions'
import { useSettings } from './use-settings'

/** Who changed which setting when, old → new, as the instance confirmed it; each can be set back. */
export function SettingHistory() {
  const { instanceId } = useInstance()
  const trpc = useTRPC()
  const mayChange = useMayChange()
  const query = useQuery(
    trpc.setting.history.queryOptions({ instanceId, limit: 200 }, { refetchInterval: 10_000 }),
  )
  const { settings, refresh } = useSettings(instanceId)
  const [applied, setApplied] = useState<ConfirmedChanges | null>(null)
  const [reviewing, setReviewing] = useState<SettingChange[] | null>(null)
  const changes = query.data?.changes
  return (
    <>
      <ConfirmedAlert changes={applied} />
      <SettingRevisions
        settings={settings ?? []}
        onApplied={(confirmed) => {
          setApplied(confirmed)
          refresh()
        }}
      />
      <Card
        title="History"
        description="Changes made through Floe, as the instance confirmed them."
        bodyClassName="p-0"
      >
        {query.error && !changes ? (
          <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} className="m-3" />
        ) : changes === undefined ? (
          <SkeletonRows label="Loading the history" />
        ) : changes.length === 0 ? (
          <EmptyState icon={History} title="No setting has been changed yet">
            Every change made here is kept with who made it, when, and both values.
          </EmptyState>
        ) : (
          <Table label="History of settings">
            <TableHead>
              <tr>
                <TableHeader>When</TableHeader>
                <TableHeader>Setting</TableHeader>
                <TableHeader>Old → new</TableHeader>
                <TableHeader>Who</TableHeader>
                <TableHeader>Why</TableHeader>
                <TableHeader>Operation</TableHeader>
                <TableHeader actions>
                  <span className="sr-only">Set back</span>
                </TableHeader>
              </tr>
            </TableHead>
            <TableBody>
              {changes.map((entry) => (
                <TableRow key={`${entry.operationId} ${entry.name}`}>
                  <TableCell>
                    <Moment at={entry.at} />
                  </TableCell>
                  <TableCell className="font-mono">{entry.name}</TableCell>
                  <TableCell>
                    <span className="inline-flex flex-wrap items-center gap-1.5 font-mono">
                      <span className="text-ink-muted">{entry.oldValue ?? 'default'}</span>
                      <ArrowRight aria-label="became" className="size-3.5 shrink-0 text-ink-faint" />
                      <span className="font-semibold">{entry.newValue ?? 'default'}</span>
                    </span>
                    {entry.pendingRestart ? (
                      <Badge tone="warn" className="ml-2">
                        in force after a restart
                      </Badge>
                    ) : null}
                  </TableCell>
                  <TableCell>{entry.actorName}</TableCell>
                  <TableCell className="max-w-64 break-words text-ink-muted">{entry.reason ?? '–'}</TableCell>
                  <TableCell>
                    <OperationLink operationId={entry.operationId}>Open</OperationLink>
                  </TableCell>
                  <TableCell actions>
                    <Button
                      size="small"
                      disabled={!mayChange || !settings}
                      title={
                        mayChange
                          ? `Set ${entry.name} back to ${entry.oldValue ?? 'its default'}`
                          : viewerHint
                      }
                      aria-label={`Set back ${entry.name} to ${entry.oldValue ?? 'its default'}`}
                      onClick={() => setReviewing([{ name: entry.name, value: entry.oldValue }])}
                    >
                      <Undo2 aria-hidden />
                      Set back
                    </Button>
                  </TableCell>
                </TableRow>
              ))}
            </TableBody>
          </Table>
        )}
        <ReviewDialog
          instanceId={instanceId}
          changes={reviewing}
          settings={settings ?? []}
          onClose={() => setReviewing(null)}
          onApplied={(confirmed) => {
            setApplied(confirmed)
            refresh()
          }}
        />
      </Card>
    </>
  )
}
