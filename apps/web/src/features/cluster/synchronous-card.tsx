'use client'
import { type CommitMode, commitModes, commitModeWords, type InstanceId } from '@floe/domain'
import { Alert, Button, Card, Checkbox, Field, Segmented, Select, Switch } from '@floe/ui'
import { ArrowDown, ArrowUp } from 'lucide-react'
import { useEffect, useId, useRef, useState } from 'react'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { Refusal } from '../operation/refusal'
import { moved, sameSynchronous } from './synchronous-choice'
import { type ClusterDetail, type Member, useClusterVerbs } from './use-cluster'

type Method = 'none' | 'first' | 'any'

/** Which standbys a commit waits for and how long, with a sentence on what each level may lose. */
export function SynchronousCard({ detail }: { detail: ClusterDetail }) {
  const { cluster } = detail
  const current = cluster.synchronous
  // a former primary stays in the set until it is rejoined
  const standbys = cluster.members.filter(
    (m) =>
      m.memberRole === 'standby' ||
      (m.memberRole === 'fenced' && current?.instanceIds.includes(m.instanceId)),
  )
  const [method, setMethod] = useState<Method>(current?.method ?? 'none')
  const [chosen, setChosen] = useState<InstanceId[]>(
    current?.instanceIds ?? standbys.map((m) => m.instanceId),
  )
  const [count, setCount] = useState(current?.count ?? 1)
  const [strict, setStrict] = useState(current?.strict ?? false)
  const [mode, setMode] = useState<CommitMode>(cluster.commitMode)
  const verbs = useClusterVerbs()
  const mayChange = useMayChange()
  const id = useId()
  const known = chosen.filter((c) => standbys.some((s) => s.instanceId === c))
  const synchronous =
    method === 'none' || known.length === 0
      ? null
      : { method, count: Math.min(count, known.length), instanceIds: known, strict }
  const shownMode = synchronous === null && mode !== 'off' ? 'local' : mode
  const unchanged = mode === cluster.commitMode && sameSynchronous(synchronous, current)
  const nobody = method !== 'none' && standbys.length > 0 && known.length === 0
  const busy = detail.openOperation !== null
  return (
    <Card title="Synchronous replication" description="synchronous_standby_names and synchronous_commit">
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
                { value: 'none', label: 'Asynchronous', title: 'Commits wait for no standby' },
                { value: 'any', label: 'Any N of', title: 'ANY n: the first n to confirm' },
                { value: 'first', label: 'First N of', title: 'FIRST n: in the order of the list' },
              ]}
            />
            {method !== 'none' ? (
              <fieldset className="flex flex-col gap-2">
                <legend className="sr-only">Standbys</legend>
                <Standbys
                  standbys={standbys}
                  chosen={known}
                  ordered={method === 'first'}
                  onChange={setChosen}
                />
                <Field label="Standbys that have to confirm (N)">
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
                <div className="mt-1 flex items-start gap-3">
                  <Switch
                    id={`${id}-strict`}
                    checked={strict}
                    aria-describedby={`${id}-strict-meaning`}
                    onCheckedChange={setStrict}
                  />
                  <span className="text-sm">
                    <label htmlFor={`${id}-strict`} className="font-medium">
                      Strict
                    </label>
                    <span id={`${id}-strict-meaning`} className="block text-ink-muted">
                      {strict
                        ? 'If a failover leaves too few of them, commits wait until enough are back.'
                        : 'If a failover leaves too few of them, the new primary continues with those that are left.'}
                    </span>
                  </span>
                </div>
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
        {nobody ? (
          <p className="text-sm text-ink-muted">Choose a standby to wait for, or “Asynchronous”.</p>
        ) : shownMode !== mode ? (
          <p className="text-sm text-ink-muted">
            Without synchronous standbys <span className="font-mono">{mode}</span> waits no longer than{' '}
            <span className="font-mono">local</span>.
          </p>
        ) : null}
        {verbs.synchronous.error ? <Refusal error={verbs.synchronous.error} /> : null}
        <div>
          <Button
            variant="primary"
            busy={verbs.synchronous.isPending}
            disabled={!mayChange || busy || unchanged || nobody}
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

/** The standbys to choose from; for FIRST the chosen ones in their order, which two buttons change. */
function Standbys({
  standbys,
  chosen,
  ordered,
  onChange,
}: {
  standbys: readonly Member[]
  chosen: readonly InstanceId[]
  ordered: boolean
  onChange: (chosen: InstanceId[]) => void
}) {
  const id = useId()
  const [told, setTold] = useState('')
  // the row moves in the page, and the button that moved it would lose the focus
  const pressed = useRef<string | null>(null)
  useEffect(() => {
    if (pressed.current) document.getElementById(pressed.current)?.focus()
    pressed.current = null
  })
  const shown = ordered
    ? [
        ...chosen.flatMap((c) => standbys.filter((m) => m.instanceId === c)),
        ...standbys.filter((m) => !chosen.includes(m.instanceId)),
      ]
    : standbys
  const move = ({ instanceId, name }: Member, by: -1 | 1, button: string) => {
    const next = moved(chosen, instanceId, by)
    pressed.current = button
    onChange(next)
    setTold(`${name} is number ${next.indexOf(instanceId) + 1} of ${next.length}`)
  }
  return (
    <>
      {ordered ? (
        <p className="text-xs text-ink-muted">
          Commits wait for the first of these that are connected; if one is away, the next in the list takes
          its place.
        </p>
      ) : null}
      <ul className="flex flex-col gap-2">
        {shown.map((m) => {
          const place = chosen.indexOf(m.instanceId)
          const label = `${id}-${m.instanceId}`
          const arrow = (by: -1 | 1) => {
            const atEnd = place + by < 0 || place + by >= chosen.length
            const word = by < 0 ? 'up' : 'down'
            const button = `${label}-${word}`
            return (
              <Button
                id={button}
                variant="quiet"
                size="icon-small"
                aria-label={`Move ${m.name} ${word}`}
                title={`Move ${m.name} ${word}`}
                // not `disabled`: the focus stays on it when its row has come to the end
                aria-disabled={atEnd || undefined}
                onClick={() => {
                  if (!atEnd) move(m, by, button)
                }}
              >
                {by < 0 ? <ArrowUp aria-hidden /> : <ArrowDown aria-hidden />}
              </Button>
            )
          }
          return (
            <li key={m.instanceId} className="flex min-h-7 items-center gap-2 text-sm">
              <Checkbox
                id={label}
                checked={place >= 0}
                onCheckedChange={(on) =>
                  onChange(on === true ? [...chosen, m.instanceId] : chosen.filter((c) => c !== m.instanceId))
                }
              />
              {ordered ? (
                <span className="w-5 text-right text-ink-muted tabular-nums">
                  {place >= 0 ? `${place + 1}.` : ''}
                </span>
              ) : null}
              <label htmlFor={label} className="min-w-0">
                {m.name}{' '}
                <span className="text-ink-muted">
                  on {m.hostName}
                  {m.memberRole === 'fenced' ? ', to be rejoined first' : ''}
                </span>
              </label>
              {ordered && place >= 0 && chosen.length > 1 ? (
                <span className="ml-auto flex">
                  {arrow(-1)}
                  {arrow(1)}
                </span>
              ) : null}
            </li>
          )
        })}
      </ul>
      <span aria-live="polite" className="sr-only">
        {told}
      </span>
    </>
  )
}
