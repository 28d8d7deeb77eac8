'use client'
import { connectionForms, type Fault, InstanceName, type OperationId } from '@floe/domain'
import {
  Alert,
  Button,
  Card,
  FaultAlert,
  Field,
  Input,
  PageHeader,
  Progress,
  Select,
  StateBadge,
} from '@floe/ui'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Plus, X } from 'lucide-react'
import Link from 'next/link'
import { useRef, useState } from 'react'
import type { RouterInputs, RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { OperationLink } from '../operation/operation-link'
import { OperationSteps } from '../operation/operation-steps'
import { useOperation } from '../operation/use-operation'
import { ConnectionCard } from './connection-card'

type Created = RouterOutputs['instance']['create']
type SettingLine = { key: number; name: string; value: string }

/** Creates an instance: asks, follows the operation, then shows how to connect, with the password this once. */
export function CreateInstance() {
  const [created, setCreated] = useState<Created | null>(null)
  return (
    <div className="max-w-3xl">
      <PageHeader
        title={created ? `Creating ${created.name}` : 'Create instance'}
        description={
          created
            ? undefined
            : 'A PostgreSQL engine of its own: data directory, port and settings. It runs within seconds.'
        }
      />
      {created ? (
        <Creation created={created} onAgain={() => setCreated(null)} />
      ) : (
        <CreateForm onCreated={setCreated} />
      )}
    </div>
  )
}

function CreateForm({ onCreated }: { onCreated: (created: Created) => void }) {
  const trpc = useTRPC()
  const mayChange = useMayChange()
  const [name, setName] = useState('')
  const [hostId, setHostId] = useState('')
  const [lines, setLines] = useState<readonly SettingLine[]>([])
  const [nameError, setNameError] = useState<string | null>(null)
  // one key for one intent: pressing again after a broken connection creates nothing twice
  const key = useRef<string | null>(null)
  const hosts = useQuery(trpc.host.list.queryOptions())
  const create = useMutation(
    trpc.instance.create.mutationOptions({
      onSuccess: onCreated,
      onError: (error) => {
        if (faultOf(error).code !== 'console.unreachable') key.current = null
      },
    }),
  )
  const fault: Fault | null = create.error ? faultOf(create.error) : null
  const several = (hosts.data?.hosts.length ?? 0) > 1

  function submit() {
    const parsed = InstanceName.safeParse(name)
    if (!parsed.success) {
      setNameError(parsed.error.issues[0]?.message ?? 'is not a name')
      return
    }
    setNameError(null)
    key.current ??= newIdempotencyKey()
    const settings = Object.fromEntries(
      lines.filter((l) => l.name.trim() !== '').map((l) => [l.name.trim(), l.value.trim()]),
    )
    create.mutate({
      name: parsed.data,
      settings,
      idempotencyKey: key.current,
      ...(hostId ? { hostId: hostId as RouterInputs['instance']['create']['hostId'] } : {}),
    })
  }
  const change = (line: SettingLine) =>
    setLines((before) => before.map((other) => (other.key === line.key ? line : other)))

  return (
    <Card>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          submit()
        }}
      >
        <Field
          label="Name"
          hint="Lower-case letters, digits and hyphens; it names the instance everywhere."
          error={nameError}
          className="max-w-sm"
        >
          {(control) => (
            <Input
              {...control}
              autoFocus
              autoComplete="off"
              autoCapitalize="off"
              spellCheck={false}
              maxLength={80}
              value={name}
              onChange={(event) => {
                setName(event.target.value)
                setNameError(null)
                key.current = null
              }}
            />
          )}
        </Field>
        {several ? (
          <Field
            label="Host"
            className="max-w-sm"
            hint="Left alone, the host with the most free ports is taken."
          >
            {(control) => (
              <Select {...control} value={hostId} onChange={(event) => setHostId(event.target.value)}>
                <option value="">chosen by Floe</option>
                {hosts.data?.hosts.map((host) => (
                  <option key={host.hostId} value={host.hostId}>
                    {host.name} ({host.state})
                  </option>
                ))}
              </Select>
            )}
          </Field>
        ) : null}
        <details className="rounded-md border border-line">
          <summary className="px-3 py-2 text-sm font-medium">Advanced: settings</summary>
          <div className="flex flex-col gap-3 border-t border-line px-3 py-3">
            <p className="text-xs text-ink-muted">
              Written before the first start, as in postgresql.conf; for example shared_buffers = 1GB. All of
              them can be changed later.
            </p>
            {lines.map((line) => (
              <div key={line.key} className="flex items-end gap-2">
                <Field label="Setting" className="flex-1">
                  {(control) => (
                    <Input
                      {...control}
                      className="font-mono"
                      autoCapitalize="off"
                      spellCheck={false}
                      value={line.name}
                      onChange={(event) => change({ ...line, name: event.target.value })}
                    />
                  )}
                </Field>
                <Field label="Value" className="flex-1">
                  {(control) => (
                    <Input
                      {...control}
                      className="font-mono"
                      spellCheck={false}
                      value={line.value}
                      onChange={(event) => change({ ...line, value: event.target.value })}
                    />
                  )}
                </Field>
                <Button
                  variant="quiet"
                  size="icon"
                  aria-label={`Remove ${line.name || 'this line'}`}
                  onClick={() => setLines((before) => before.filter((other) => other.key !== line.key))}
                >
                  <X aria-hidden />
                </Button>
              </div>
            ))}
            <div>
              <Button
                size="small"
                onClick={() =>
                  setLines((before) => [
                    ...before,
                    { key: (before.at(-1)?.key ?? 0) + 1, name: '', value: '' },
                  ])
                }
              >
                <Plus aria-hidden />
                Add a setting
              </Button>
            </div>
          </div>
        </details>
        {fault ? <FaultAlert fault={fault} /> : null}
        <div className="flex flex-wrap gap-2">
          <Button
            type="submit"
            variant="primary"
            size="large"
            busy={create.isPending}
            disabled={!mayChange}
            title={mayChange ? undefined : viewerHint}
          >
            Create instance
          </Button>
          <Button size="large" asChild>
            <Link href="/instances">Back</Link>
          </Button>
        </div>
      </form>
    </Card>
  )
}

function Creation({ created, onAgain }: { created: Created; onAgain: () => void }) {
  const watched = useOperation(created.operationId as OperationId)
  const operation = watched?.operation ?? null
  const succeeded = operation?.state === 'succeeded'
  const failed = operation?.state === 'failed' || operation?.state === 'cancelled'
  return (
    <div className="flex flex-col gap-3">
      {succeeded ? <Connection created={created} /> : null}
      <Card
        title={
          <span className="flex items-center gap-2">
            Operation {operation ? <StateBadge state={operation.state} of="operation" /> : null}
          </span>
        }
        actions={<OperationLink operationId={created.operationId} />}
      >
        {watched?.fault ? <FaultAlert fault={watched.fault} tone="warn" className="mb-3" /> : null}
        {operation ? (
          <>
            {!succeeded && !failed ? (
              <Progress label="Creation, progress" value={operation.progress} className="mb-3 h-2" />
            ) : null}
            <OperationSteps steps={operation.steps} />
          </>
        ) : (
          <Progress label="Creation, progress" value={null} />
        )}
      </Card>
      {failed ? (
        <>
          {operation?.fault ? <FaultAlert fault={operation.fault} /> : null}
          {created.password ? (
            <Alert title="If it is retried, this password stays">
              <code className="font-mono break-all">{created.password}</code>
            </Alert>
          ) : null}
          <div className="flex gap-2">
            <Button asChild variant="primary">
              <Link href={`/operations/${created.operationId}`}>Look into it or retry</Link>
            </Button>
            <Button onClick={onAgain}>Create another</Button>
          </div>
        </>
      ) : null}
    </div>
  )
}

function Connection({ created }: { created: Created }) {
  const trpc = useTRPC()
  const shown = useQuery(
    trpc.instance.show.queryOptions(
      { instanceId: created.instanceId },
      // the operation may be done a moment before the observation that carries the port
      { refetchInterval: ({ state }) => (state.data?.connection ? false : 300) },
    ),
  )
  const target = shown.data?.connection
  if (!target)
    return shown.error ? (
      <FaultAlert fault={faultOf(shown.error)} onRetry={() => void shown.refetch()} />
    ) : (
      <Progress label="Waiting for its port" value={null} />
    )
  return (
    <>
      <Alert tone="good" title={`${created.name} is running`}>
        {created.password
          ? 'Its password stands in the connection below. It is shown only this once and stored nowhere: keep it now.'
          : 'Its password was shown when it was first asked for, and is not known any more.'}
      </Alert>
      <ConnectionCard connection={connectionForms(target, created.password)} title="Connect" />
      <div className="flex gap-2">
        <Button variant="primary" size="large" asChild>
          <Link href={`/instances/${created.name}`}>Open {created.name}</Link>
        </Button>
      </div>
    </>
  )
}
