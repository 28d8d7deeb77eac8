'use client'
import type { OperationId } from '@floe/domain'
import {
  Age,
  Alert,
  Button,
  ConfirmDialog,
  FaultAlert,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { useInstance } from '../instance/instance-context'
import { OperationLink } from '../operation/operation-link'
import { refusalOf } from '../operation/refusal'
import { useOperation } from '../operation/use-operation'

/** Settings that somebody changed past Floe, with both ways out; nothing where there are none. */
export function DriftAlert() {
  const { instanceId } = useInstance()
  const trpc = useTRPC()
  const queries = useQueryClient()
  const mayChange = useMayChange()
  const query = useQuery(
    trpc.setting.drift.queryOptions({ scope: { instanceId } }, { refetchInterval: 3_000 }),
  )
  const [asking, setAsking] = useState<'adopt' | 'revert' | null>(null)
  const [operationId, setOperationId] = useState<OperationId | null>(null)
  const begun = {
    onSuccess: (answer: { operationId: OperationId }) => {
      setOperationId(answer.operationId)
      setAsking(null)
    },
  }
  const adopt = useMutation(trpc.setting.adopt.mutationOptions(begun))
  const revert = useMutation(trpc.setting.revert.mutationOptions(begun))
  const operation = useOperation(operationId)?.operation ?? null
  const state = operation?.state
  useEffect(() => {
    if (state === 'succeeded') void queries.invalidateQueries({ queryKey: trpc.setting.pathKey() })
  }, [state, queries, trpc])
  const drift = query.data?.drift ?? []
  const verb = asking === 'adopt' ? adopt : revert
  const busy = operation !== null && (state === 'queued' || state === 'running')
  if (drift.length === 0) return null
  return (
    <>
      <Alert
        tone="warn"
        className="mb-3"
        title={
          drift.length === 1
            ? 'Configuration drift: 1 setting'
            : `Configuration drift: ${drift.length} settings`
        }
        actions={
          <>
            <Button
              size="small"
              disabled={!mayChange || busy}
              title={mayChange ? undefined : viewerHint}
              onClick={() => setAsking('adopt')}
            >
              Adopt
            </Button>
            <Button
              size="small"
              disabled={!mayChange || busy}
              title={mayChange ? undefined : viewerHint}
              onClick={() => setAsking('revert')}
            >
              Revert
            </Button>
            {operationId ? <OperationLink operationId={operationId} /> : null}
          </>
        }
      >
        <p>
          A file was edited, or ALTER SYSTEM was used, outside Floe. Last checked{' '}
          <Age at={query.data?.members[0]?.observedAt ?? null} />.
        </p>
        <div className="mt-2 overflow-x-auto rounded-md border border-line bg-surface">
          <Table label="Configuration drift">
            <TableHead>
              <tr>
                <TableHeader>Setting</TableHeader>
                <TableHeader>Where</TableHeader>
                <TableHeader>Was</TableHeader>
                <TableHeader>Is</TableHeader>
              </tr>
            </TableHead>
            <TableBody>
              {drift.map((entry) => (
                <TableRow key={`${entry.file} ${entry.name}`}>
                  <TableCell className="font-mono text-ink">{entry.name}</TableCell>
                  <TableCell className="text-xs">
                    {entry.file}
                    {entry.line === null ? '' : `, line ${entry.line}`}
                  </TableCell>
                  <TableCell className="font-mono break-all">{entry.was ?? 'not set'}</TableCell>
                  <TableCell className="font-mono break-all text-ink">{entry.is ?? 'not set'}</TableCell>
                </TableRow>
              ))}
            </TableBody>
          </Table>
        </div>
        {operation?.fault ? <FaultAlert fault={operation.fault} className="mt-2" /> : null}
      </Alert>
      <ConfirmDialog
        open={asking !== null}
        onOpenChange={(open) => {
          if (open) return
          setAsking(null)
          adopt.reset()
          revert.reset()
        }}
        title={asking === 'adopt' ? 'Adopt the drift?' : 'Revert the drift?'}
        confirmLabel={asking === 'adopt' ? 'Adopt' : 'Revert'}
        busy={verb.isPending}
        {...refusalOf(verb.error)}
        onConfirm={() => verb.mutate({ instanceId, idempotencyKey: newIdempotencyKey() })}
      >
        {asking === 'adopt' ? (
          <p>
            The values stay as they are. What ALTER SYSTEM set moves into Floe’s file, so that it can be
            changed here; the history names you as who adopted it.
          </p>
        ) : (
          <p>
            Floe’s file and postgresql.conf become what they were, what ALTER SYSTEM set is reset, and the
            engine reads them again. What needs a restart comes into force with the next one.
          </p>
        )}
      </ConfirmDialog>
    </>
  )
}
