'use client'
import {
  connectionForms,
  type Fault,
  InstanceName,
  LimitChanges,
  type LimitName,
  newSettingFaults,
  noLimits,
  OperationId,
  requiresTls,
  whyNoLimits,
  withLimits,
} from '@floe/domain'
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
  SkeletonRows,
  StateBadge,
} from '@floe/ui'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Pencil, Plus, X } from 'lucide-react'
import Link from 'next/link'
import { useSearchParams } from 'next/navigation'
import { useRef, useState } from 'react'
import type { RouterInputs, RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { LimitFields } from '../limit/limit-fields'
import { SumsOfHost } from '../limit/sums-of-host'
import { type LimitTexts, limitTexts, typedLimits } from '../limit/typed-limits'
import { OperationLink } from '../operation/operation-link'
import { OperationSteps } from '../operation/operation-steps'
import { useOperation } from '../operation/use-operation'
import { ConnectionCard } from './connection-card'

type Created = RouterOutputs['instance']['create']
type SettingLine = { key: number; name: string; value: string }

type Draft = { name: string; hostId: string; lines: readonly SettingLine[]; limits: LimitTexts }

const emptyDraft: Draft = { name: '', hostId: '', lines: [], limits: limitTexts(noLimits) }

/** What an operation that was to create an instance was asked with, as the form holds it. */
export function draftOf(input: Record<string, unknown>): Draft {
  const settings = typeof input.settings === 'object' && input.settings !== null ? input.settings : {}
  return {
    ...emptyDraft,
    name: typeof input.name === 'string' ? input.name : '',
    lines: Object.entries(settings).map(([name, value], key) => ({ key, name, value: String(value) })),
    limits: limitTexts(LimitChanges.catch({}).parse(input.limits ?? {})),
  }
}

/**
 * Creates an instance: asks, follows the operation, then shows how to connect, with the password this once. What failed is
 * tried again from the form as it was filled in; `?from=` in the address names an operation that failed elsewhere.
 */
export function CreateInstance() {
  const trpc = useTRPC()
  const from = OperationId.safeParse(useSearchParams().get('from'))
  const earlier = useQuery({
    ...trpc.operation.show.queryOptions({ operationId: from.data as OperationId }),
    enabled: from.success,
    staleTime: Number.POSITIVE_INFINITY,
  })
  const [created, setCreated] = useState<Created | null>(null)
  const [draft, setDraft] = useState<Draft | null>(null)
  const [failed, setFailed] = useState<Fault | null>(null)
  const again = earlier.data?.operation
  const filled = draft ?? (again?.kind === 'create-instance' ? draftOf(again.input) : emptyDraft)
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
        <Creation
          created={created}
          onEdit={(fault) => {
            setFailed(fault)
            setCreated(null)
          }}
        />
      ) : from.success && earlier.isPending ? (
        <Card>
          <SkeletonRows label="Loading the request" />
        </Card>
      ) : (
        <CreateForm
          draft={filled}
          failed={failed ?? again?.fault ?? null}
          onCreated={(next, asked) => {
            setDraft(asked)
            setFailed(null)
            setCreated(next)
          }}
        />
      )}
    </div>
  )
}

function CreateForm({
  draft,
  failed,
  onCreated,
}: {
  draft: Draft
  /** Why it failed when it was tried with this draft. */
  failed: Fault | null
  onCreated: (created: Created, asked: Draft) => void
}) {
  const trpc = useTRPC()
  const mayChange = useMayChange()
  const [name, setName] = useState(draft.name)
  const [hostId, setHostId] = useState(draft.hostId)
  const [lines, setLines] = useState(draft.lines)
  const [limits, setLimits] = useState(draft.limits)
  const [limitErrors, setLimitErrors] = useState<ReadonlyMap<LimitName, string>>(new Map())
  const [limitFault, setLimitFault] = useState<Fault | null>(null)
  const [nameError, setNameError] = useState<string | null>(null)
  const [lineFaults, setLineFaults] = useState<ReadonlyMap<number, Fault>>(new Map())
  // one key for one intent: pressing again after a broken connection creates nothing twice
  const key = useRef<string | null>(null)
  const hosts = useQuery(trpc.host.list.queryOptions())
  const create = useMutation(
    trpc.instance.create.mutationOptions({
      onSuccess: (next) => onCreated(next, { name, hostId, lines, limits }),
      onError: (error) => {
        if (faultOf(error).code !== 'console.unreachable') key.current = null
      },
    }),
  )
  const check = useMutation(trpc.instance.check.mutationOptions())
  const error = create.error ?? check.error
  const refused: Fault | null = error ? faultOf(error) : null
  // a name that is taken is reported beside the name
  const nameTaken = refused?.code === 'instance.name_taken' ? refused : null
  const fault = limitFault ?? (nameTaken ? null : refused)
  const several = (hosts.data?.hosts.length ?? 0) > 1
  const meant = hosts.data?.hosts.find((host) => host.hostId === hostId || !several)

  async function submit() {
    create.reset()
    check.reset()
    const parsed = InstanceName.safeParse(name)
    if (!parsed.success) {
      setNameError(parsed.error.issues[0]?.message ?? 'is not a name')
      return
    }
    setNameError(null)
    const asked = typedLimits(limits, noLimits)
    setLimitErrors(asked.wrong)
    const notLimited = asked.wrong.size > 0 ? null : whyNoLimits(withLimits(noLimits, asked.changes))
    setLimitFault(notLimited)
    if (asked.wrong.size > 0 || notLimited) return
    const given = lines.filter((l) => l.name.trim() !== '' || l.value.trim() !== '')
    const faults = newSettingFaults(given)
    const wrong = new Map(given.flatMap((l, i) => (faults[i] ? [[l.key, faults[i]] as const] : [])))
    setLineFaults(wrong)
    if (wrong.size > 0) return
    const settings = Object.fromEntries(given.map((l) => [l.name.trim(), l.value.trim()]))
    const host = hostId ? { hostId: hostId as RouterInputs['instance']['create']['hostId'] } : {}
    if (given.length > 0) {
      // the engine that it would get says what Settings would: where it refuses, nothing has begun
      const checked = await check.mutateAsync({ settings, ...host }).catch(() => null)
      if (!checked) return
      const refusedLines = given.flatMap((l) => {
        const said = checked.results.find((r) => r.name.toLowerCase() === l.name.trim().toLowerCase())
        return said?.fault ? [[l.key, said.fault] as const] : []
      })
      setLineFaults(new Map(refusedLines))
      if (refusedLines.length > 0) return
    }
    key.current ??= newIdempotencyKey()
    create.mutate({
      name: parsed.data,
      settings,
      ...(Object.keys(asked.changes).length > 0 ? { limits: asked.changes } : {}),
      idempotencyKey: key.current,
      ...host,
    })
  }
  const change = (line: SettingLine) => {
    key.current = null
    setLineFaults((before) => new Map([...before].filter(([other]) => other !== line.key)))
    setLines((before) => before.map((other) => (other.key === line.key ? line : other)))
  }

  return (
    <Card>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        {failed ? <FaultAlert fault={failed} tone="warn" className="-mb-1" /> : null}
        <Field
          label="Name"
          hint="Lower-case letters, digits and hyphens; it names the instance everywhere."
          error={nameError ?? (nameTaken ? `${nameTaken.message}. ${nameTaken.hint ?? ''}` : null)}
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
                if (nameTaken) create.reset()
                key.current = null
              }}
            />
          )}
        </Field>
        {several ? (
          <Field label="Host" className="max-w-sm" hint="Default: the host with the most free ports.">
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
        <details className="rounded-md border border-line" open={draft.lines.length > 0 || undefined}>
          <summary className="px-3 py-2 text-sm font-medium">Advanced: settings</summary>
          <div className="flex flex-col gap-3 border-t border-line px-3 py-3">
            <p className="text-xs text-ink-muted">
              Written before the first start, as in postgresql.conf; for example shared_buffers = 1GB. All of
              them can be changed later.
            </p>
            {lines.map((line) => (
              <div key={line.key} className="flex items-start gap-2">
                <Field label="Setting" className="flex-1" error={settingError(lineFaults.get(line.key))}>
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
                  className="mt-5"
                  aria-label={`Remove ${line.name || 'this line'}`}
                  onClick={() => {
                    key.current = null
                    setLines((before) => before.filter((other) => other.key !== line.key))
                  }}
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
        <details
          className="rounded-md border border-line"
          open={Object.values(draft.limits).some((text) => text !== '') || undefined}
        >
          <summary className="px-3 py-2 text-sm font-medium">Advanced: limits</summary>
          <div className="flex flex-col gap-3 border-t border-line px-3 py-3">
            <p className="text-xs text-ink-muted">
              How much of its host it may use, in force before the first start. An empty field is no limit.
              All of them can be changed later, without a restart.
            </p>
            <LimitFields
              texts={limits}
              wrong={limitErrors}
              onChange={(texts) => {
                key.current = null
                setLimits(texts)
              }}
            />
            {meant ? <SumsOfHost hostId={meant.hostId} texts={limits} /> : null}
          </div>
        </details>
        {fault ? <FaultAlert fault={fault} /> : null}
        <div className="flex flex-wrap gap-2">
          <Button
            type="submit"
            variant="primary"
            size="large"
            busy={create.isPending || check.isPending}
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

const settingError = (fault: Fault | undefined) =>
  fault ? [fault.message, fault.detail].filter(Boolean).join('. ') : null

function Creation({ created, onEdit }: { created: Created; onEdit: (failed: Fault | null) => void }) {
  const watched = useOperation(created.operationId)
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
          <div className="flex flex-wrap gap-2">
            <Button variant="primary" onClick={() => onEdit(operation?.fault ?? null)}>
              <Pencil aria-hidden />
              Edit and try again
            </Button>
            <Button asChild>
              <Link href={`/operations/${created.operationId}`}>Open the operation</Link>
            </Button>
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
          ? 'Its password is part of the connection below. It is shown only once and stored nowhere: save it now.'
          : 'Its password was shown at the first request and is no longer known.'}
      </Alert>
      <ConnectionCard
        connection={connectionForms(target, created.password, requiresTls(shown.data?.remoteAccess))}
        title="Connect"
      />
      <div className="flex gap-2">
        <Button variant="primary" size="large" asChild>
          <Link href={`/instances/${created.name}`}>Open {created.name}</Link>
        </Button>
      </div>
    </>
  )
}
