'use client'
import { type CommitMode, commitModes, commitModeWords, type InstanceId } from '@floe/domain'
import { Alert, Button, Card, Checkbox, FaultAlert, Field, Segmented, Select } from '@floe/ui'
import { useId, useState } from 'react'
import { faultOf } from '@/trpc/fault'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { type ClusterDetail, useClusterVerbs } from './use-cluster'

type Method = 'none' | 'first' | 'any'

/** Which standbys a commit waits for and how long, with a sentence on what each level may lose. */
export function SynchronousCard({ detail }: { detail: ClusterDetail }) {
  const { cluster } = detail
  const standbys = cluster.members.filter((m) => m.memberRole === 'standby')
  const current = cluster.synchronous
  const [method, setMethod] = useState<Method>(current?.method ?? 'none')
  const [chosen, setChosen] = useState<InstanceId[]>(
    current?.instanceIds ?? standbys.map((m) => m.instanceId),
  )
  const [count, setCount] = useState(current?.count ?? 1)
  const [mode, setMode] = useState<CommitMode>(cluster.commitMode)
  const verbs = useClusterVerbs()
  const mayChange = useMayChange()
  const id = useId()
  const known = chosen.filter((c) => standbys.some((s) => s.instanceId === c))
  const synchronous =
    method === 'none' || known.length === 0
      ? null
      : { method, count: Math.min(count, known.length), instanceIds: known, strict: current?.strict ?? false }
  const shownMode = synchronous === null && mode !== 'off' ? 'local' : mode
  const unchanged =
    mode === cluster.commitMode &&
    JSON.stringify(synchronous && [synchronous.method, synchronous.count, synchronous.instanceIds]) ===
      JSON.stringify(current && [current.method, current.count, current.instanceIds])
  const busy = detail.openOperation !== null
  return (
    <Card title="What commits wait for" description="synchronous_standby_names and synchronous_commit">
      <div className="flex flex-col gap-4">
        {standbys.length === 0 ? (
          <Alert title="There is no standby to wait for">
            Create one first; until then commits are local.
          </Alert>
        ) : (
          <>
            <Segmented<Method>
              label="Which standbys"
              className="self-start"
              value={method}
              onChange={setMethod}
              choices={[
                { value: 'none', label: 'No standby', title: 'Asynchronous' },
                { value: 'any', label: 'Any of', title: 'ANY n: whichever confirm first' },
                { value: 'first', label: 'First of', title: 'FIRST n: in the order of the list' },
              ]}
            />
            {method !== 'none' ? (
              <fieldset className="flex flex-col gap-2">
                <legend className="sr-only">Standbys</legend>
                {standbys.map((m) => (
                  <div key={m.instanceId} className="flex items-center gap-2 text-sm">
                    <Checkbox
                      id={`${id}-${m.instanceId}`}
                      checked={known.includes(m.instanceId)}
                      onCheckedChange={(on) =>
                        setChosen(
                          on === true ? [...known, m.instanceId] : known.filter((c) => c !== m.instanceId),
                        )
                      }
                    />
                    <label htmlFor={`${id}-${m.instanceId}`}>
                      {m.name} <span className="text-ink-muted">on {m.hostName}</span>
                    </label>
                  </div>
                ))}
                <Field label="How many have to confirm">
                  {(control) => (
                    <Select
                      {...control}
                      value={String(Math.min(count, Math.max(1, known.length)))}
                      onChange={(event) => setCount(Number(event.target.value))}
                    >
                      {Array.from({ length: Math.max(1, known.length) }, (_, i) => i + 1).map((n) => (
                        <option key={n} value={n}>
                          {n}
                        </option>
                      ))}
                    </Select>
                  )}
                </Field>
              </fieldset>
            ) : null}
          </>
        )}
        <fieldset className="flex flex-col gap-1.5">
          <legend className="mb-1 text-sm font-medium">synchronous_commit</legend>
          {commitModes.map((m) => (
            <label
              key={m}
              className="flex cursor-pointer items-start gap-2.5 rounded-md border border-line px-3 py-2 text-sm has-checked:border-accent has-checked:bg-accent-soft"
            >
              <input
                type="radio"
                name={`${id}-mode`}
                value={m}
                checked={mode === m}
                onChange={() => setMode(m)}
                className="mt-1"
              />
              <span className="min-w-0">
                <span className="font-mono font-medium">{m}</span>{' '}
                <span className="text-ink-muted">{commitModeWords[m].waits}</span>
                <span className="block text-ink-muted">May lose: {commitModeWords[m].mayLose}</span>
              </span>
            </label>
          ))}
        </fieldset>
        {shownMode !== mode ? (
          <p className="text-sm text-ink-muted">
            Without synchronous standbys <span className="font-mono">{mode}</span> waits no longer than{' '}
            <span className="font-mono">local</span>.
          </p>
        ) : null}
        {verbs.synchronous.error ? <FaultAlert fault={faultOf(verbs.synchronous.error)} /> : null}
        <div>
          <Button
            variant="primary"
            busy={verbs.synchronous.isPending}
            disabled={!mayChange || busy || unchanged}
            title={mayChange ? (busy ? 'Another operation has not ended yet.' : undefined) : viewerHint}
            onClick={() =>
              verbs.synchronous.mutate({
                clusterId: cluster.clusterId,
                synchronous,
                commitMode: mode,
                idempotencyKey: newIdempotencyKey(),
              })
            }
          >
            Apply
          </Button>
        </div>
      </div>
    </Card>
  )
}
