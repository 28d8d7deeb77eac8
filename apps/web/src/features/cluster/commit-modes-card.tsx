'use client'
import { CommitMode, type CommitModeScope, commitModes } from '@floe/domain'
import {
  Button,
  Card,
  FaultAlert,
  Field,
  Input,
  Select,
  SkeletonRows,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
} from '@floe/ui'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { Refusal } from '../operation/refusal'
import { type ClusterDetail, useClusterVerbs } from './use-cluster'

/** Overrides of synchronous_commit per database and role, including those set without Floe; added and removed here. */
export function CommitModesCard({ detail }: { detail: ClusterDetail }) {
  const { clusterId, commitMode: ofCluster } = detail.cluster
  const trpc = useTRPC()
  const verbs = useClusterVerbs()
  const mayChange = useMayChange()
  const query = useQuery(trpc.cluster.commitModes.queryOptions({ clusterId }, { refetchInterval: 5_000 }))
  const [database, setDatabase] = useState('')
  const [role, setRole] = useState('')
  const [mode, setMode] = useState<CommitMode>('on')
  const busy = detail.openOperation !== null
  const off = !mayChange || busy
  const hint = mayChange ? (busy ? 'Another operation has not ended yet.' : undefined) : viewerHint
  const change = (scope: Pick<CommitModeScope, 'database' | 'role'>, wanted: CommitMode | null) =>
    verbs.commitMode.mutate(
      { clusterId, ...scope, commitMode: wanted, idempotencyKey: newIdempotencyKey() },
      {
        onSuccess: () => {
          setDatabase('')
          setRole('')
        },
      },
    )
  const scopes = query.data?.commitModes
  return (
    <Card
      title="Overrides per database and role"
      description="synchronous_commit of a database or a role, in place of the cluster’s. New sessions use it; a role in a database overrides a role, a role overrides a database."
    >
      <div className="flex flex-col gap-4">
        {query.error && !scopes ? (
          <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} />
        ) : scopes === undefined ? (
          <SkeletonRows rows={2} label="Asking the primary" />
        ) : scopes.length === 0 ? (
          <p className="text-sm text-ink-muted">
            No overrides: every session starts with <span className="font-mono">{ofCluster}</span>.
          </p>
        ) : (
          <div className="overflow-x-auto rounded-md border border-line">
            <Table label="synchronous_commit of databases and roles">
              <TableHead>
                <tr>
                  <TableHeader>Database</TableHeader>
                  <TableHeader>Role</TableHeader>
                  <TableHeader>Level</TableHeader>
                  <TableHeader>
                    <span className="sr-only">Take away</span>
                  </TableHeader>
                </tr>
              </TableHead>
              <TableBody>
                {scopes.map((scope) => {
                  const whose = [scope.database, scope.role].filter(Boolean).join(', ') || 'every role'
                  const everywhere = scope.database === null && scope.role === null
                  return (
                    <TableRow key={`${scope.database} ${scope.role}`}>
                      <TableCell>{scope.database ?? 'every'}</TableCell>
                      <TableCell>{scope.role ?? 'every'}</TableCell>
                      <TableCell className="font-mono">{scope.commitMode}</TableCell>
                      <TableCell className="text-right">
                        <Button
                          size="small"
                          disabled={off || everywhere}
                          title={everywhere ? 'Run "ALTER ROLE ALL RESET synchronous_commit".' : hint}
                          aria-label={`Reset synchronous_commit of ${whose}`}
                          onClick={() => change(scope, null)}
                        >
                          Reset
                        </Button>
                      </TableCell>
                    </TableRow>
                  )
                })}
              </TableBody>
            </Table>
          </div>
        )}
        <form
          className="grid gap-3 sm:grid-cols-3"
          onSubmit={(event) => {
            event.preventDefault()
            change({ database: database.trim() || null, role: role.trim() || null }, mode)
          }}
        >
          <Field label="Database" hint="Empty: every one">
            {(control) => (
              <Input
                {...control}
                value={database}
                maxLength={63}
                autoComplete="off"
                spellCheck={false}
                onChange={(event) => setDatabase(event.target.value)}
              />
            )}
          </Field>
          <Field label="Role" hint="Empty: every one">
            {(control) => (
              <Input
                {...control}
                value={role}
                maxLength={63}
                autoComplete="off"
                spellCheck={false}
                onChange={(event) => setRole(event.target.value)}
              />
            )}
          </Field>
          <Field label="Level">
            {(control) => (
              <Select
                {...control}
                value={mode}
                onChange={(event) => setMode(CommitMode.parse(event.target.value))}
              >
                {commitModes.map((m) => (
                  <option key={m} value={m}>
                    {m}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          {verbs.commitMode.error ? (
            <div className="sm:col-span-3">
              <Refusal error={verbs.commitMode.error} />
            </div>
          ) : null}
          <div className="sm:col-span-3">
            <Button
              type="submit"
              busy={verbs.commitMode.isPending}
              disabled={off || (database.trim() === '' && role.trim() === '')}
              title={hint}
            >
              Set for these
            </Button>
          </div>
        </form>
      </div>
    </Card>
  )
}
