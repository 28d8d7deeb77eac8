'use client'
import {
  AutomaticFailover,
  type AutomaticWord,
  doubtSentences,
  type IsolatedPrimary,
  isolationQuorum,
} from '@floe/domain'
import { Age, Alert, Badge, Button, Card, Field, Input, Select } from '@floe/ui'
import { useState } from 'react'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { Refusal } from '../operation/refusal'
import { type ClusterDetail, useClusterVerbs } from './use-cluster'

const isolatedWords: Record<IsolatedPrimary, string> = {
  'end-clients': 'End its clients',
  'read-only': 'End its clients and let transactions be read-only',
  demote: 'Stop it',
}
const wordTitles: Record<AutomaticWord['kind'], string> = {
  wait: 'Automatic failover waits',
  decline: 'There is no automatic failover now',
  start: 'The primary is being started again',
  failover: 'The cluster fails over by itself',
}
const defaults = AutomaticFailover.parse({})
const bounds = {
  afterMs: 'From 2 to 600 seconds.',
  minIntervalMs: 'From 0 to 1,440 minutes.',
  isolatedAfterMs: 'From 5 to 3,600 seconds.',
} as const

/** What was decided last, while something is wrong with the primary. */
export function AutomaticWordAlert({ word }: { word: AutomaticWord }) {
  return (
    <Alert tone={word.kind === 'decline' ? 'bad' : 'warn'} title={wordTitles[word.kind]}>
      {word.text} Said since <Age at={word.at} />.
    </Alert>
  )
}

/** Whether the cluster fails over by itself, what that takes, and how long it waits. */
export function AutomaticCard({ detail }: { detail: ClusterDetail }) {
  const { cluster, automaticBlockers: blockers } = detail
  const current = cluster.automatic ?? null
  const [afterSeconds, setAfter] = useState(String((current ?? defaults).afterMs / 1_000))
  const [intervalMinutes, setInterval] = useState(String((current ?? defaults).minIntervalMs / 60_000))
  const [isolatedSeconds, setIsolated] = useState(String((current ?? defaults).isolatedAfterMs / 1_000))
  const [isolatedPrimary, setIsolatedPrimary] = useState<IsolatedPrimary>(
    (current ?? defaults).isolatedPrimary,
  )
  const verbs = useClusterVerbs()
  const mayChange = useMayChange()
  const asked = AutomaticFailover.safeParse({
    afterMs: Number(afterSeconds) * 1_000,
    minIntervalMs: Number(intervalMinutes) * 60_000,
    isolatedAfterMs: Number(isolatedSeconds) * 1_000,
    isolatedPrimary,
  })
  const wrong = (name: keyof typeof bounds) =>
    !asked.success && asked.error.issues.some((i) => i.path[0] === name) ? bounds[name] : undefined
  const busy = detail.openOperation !== null
  const unchanged =
    current !== null && asked.success && JSON.stringify(asked.data) === JSON.stringify(current)
  const off = !mayChange || busy
  const hint = mayChange ? (busy ? 'Another operation has not ended yet.' : undefined) : viewerHint
  const order = (automatic: AutomaticFailover | null) =>
    verbs.automatic.mutate({
      clusterId: cluster.clusterId,
      automatic,
      idempotencyKey: newIdempotencyKey(),
    })
  return (
    <Card
      title="Automatic failover"
      description="A standby takes over without a person when the primary’s agent and the standbys agree that it is lost. While the console is away nothing fails over by itself."
      actions={<Badge tone={current ? 'good' : 'neutral'}>{current ? 'on' : 'off'}</Badge>}
    >
      <div className="flex flex-col gap-4">
        {blockers.length > 0 ? (
          <Alert
            tone={current ? 'warn' : 'info'}
            title={current ? 'It would not fail over safely as it stands' : 'Before it can be turned on'}
          >
            <ul className="flex list-disc flex-col gap-1 pl-4">
              {blockers.map((b) => (
                <li key={`${b.code} ${b.message}`}>
                  {doubtSentences(b)} {b.hint}
                </li>
              ))}
            </ul>
          </Alert>
        ) : cluster.synchronous ? (
          <p className="text-sm text-ink-muted">
            {quorumWords(isolationQuorum(cluster.synchronous), cluster.synchronous.instanceIds.length)}
          </p>
        ) : null}
        <div className="grid grid-cols-1 gap-3 sm:grid-cols-3">
          <Field
            label="After (seconds)"
            hint="So long both have to say that it is lost"
            error={wrong('afterMs')}
          >
            {(control) => (
              <Input
                {...control}
                inputMode="decimal"
                value={afterSeconds}
                onChange={(event) => setAfter(event.target.value)}
              />
            )}
          </Field>
          <Field
            label="At most one in (minutes)"
            hint="From one failover by itself to the next"
            error={wrong('minIntervalMs')}
          >
            {(control) => (
              <Input
                {...control}
                inputMode="decimal"
                value={intervalMinutes}
                onChange={(event) => setInterval(event.target.value)}
              />
            )}
          </Field>
          <Field
            label="Isolated after (seconds)"
            hint="Neither a standby nor the console reaches the primary"
            error={wrong('isolatedAfterMs')}
          >
            {(control) => (
              <Input
                {...control}
                inputMode="decimal"
                value={isolatedSeconds}
                onChange={(event) => setIsolated(event.target.value)}
              />
            )}
          </Field>
        </div>
        <Field label="An isolated primary" hint="What its agent does to it, until somebody reaches it again">
          {(control) => (
            <Select
              {...control}
              value={isolatedPrimary}
              onChange={(event) => setIsolatedPrimary(event.target.value as IsolatedPrimary)}
            >
              {Object.entries(isolatedWords).map(([value, words]) => (
                <option key={value} value={value}>
                  {words}
                </option>
              ))}
            </Select>
          )}
        </Field>
        {verbs.automatic.error ? <Refusal error={verbs.automatic.error} /> : null}
        <div className="flex flex-wrap gap-2">
          <Button
            variant={current ? 'secondary' : 'primary'}
            busy={verbs.automatic.isPending}
            disabled={off || !asked.success || unchanged || (current === null && blockers.length > 0)}
            title={hint}
            onClick={() => asked.success && order(asked.data)}
          >
            {current ? 'Apply' : 'Turn on'}
          </Button>
          {current ? (
            <Button busy={verbs.automatic.isPending} disabled={off} title={hint} onClick={() => order(null)}>
              Turn off
            </Button>
          ) : null}
        </div>
      </div>
    </Card>
  )
}

/** How many standbys have to be left once the primary is gone. */
function quorumWords(quorum: number, listed: number): string {
  const all = quorum === listed
  return `${all ? `All ${listed}` : `${quorum} of ${listed}`} standbys that commits wait for have to have lost the primary, and answer: without them it can acknowledge no commit. ${all ? 'With one of them away nothing fails over by itself.' : 'Commits wait while fewer than asked for are there.'}`
}
