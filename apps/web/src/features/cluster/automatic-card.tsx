'use client'
import {
  AutomaticFailover,
  type AutomaticWord,
  doubtSentences,
  type IsolatedPrimary,
  isolationQuorum,
  type OperationState,
  type SynchronousStandbys,
} from '@floe/domain'
import { Age, Alert, Badge, Button, Card, Field, Input, Moment, Select } from '@floe/ui'
import Link from 'next/link'
import { useState } from 'react'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { OperationLink } from '../operation/operation-link'
import { Refusal } from '../operation/refusal'
import { type ClusterDetail, useClusterVerbs } from './use-cluster'

const isolatedWords: Record<IsolatedPrimary, string> = {
  'end-clients': 'Disconnect clients only',
  'read-only': 'Make it read-only',
  demote: 'Stop it',
}
const wordTitles: Record<AutomaticWord['kind'], string> = {
  wait: 'Automatic failover is waiting',
  decline: 'Automatic failover is declined',
  start: 'The primary is being restarted',
  failover: 'Automatic failover is in progress',
}
const defaults = AutomaticFailover.parse({})
const bounds = {
  afterMs: 'From 2 to 600 seconds.',
  minIntervalMs: 'From 0 to 1,440 minutes.',
  isolatedAfterMs: 'From 5 to 3,600 seconds.',
} as const

/** What was decided last, while something is wrong with the primary, and where a person can decide instead. */
export function AutomaticWordAlert({ word, primary }: { word: AutomaticWord; primary: string | undefined }) {
  const personMayAct = word.kind === 'wait' || word.kind === 'decline'
  return (
    <Alert
      tone={word.kind === 'decline' ? 'bad' : 'warn'}
      title={wordTitles[word.kind]}
      actions={
        personMayAct && primary ? (
          <Button asChild>
            <Link href={`/instances/${primary}/replication/takeover`}>Fail over manually</Link>
          </Button>
        ) : undefined
      }
    >
      {word.text} Since <Moment at={word.at} />.
    </Alert>
  )
}

/** Whether the cluster fails over automatically, what that takes, and how long it waits. */
export function AutomaticCard({ detail }: { detail: ClusterDetail }) {
  const {
    cluster,
    automaticBlockers: blockers,
    automaticShortage: shortage,
    lastAutomaticFailover: last,
  } = detail
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
      description="A standby is promoted when the primary’s agent and its standbys agree that the primary is lost. Nothing fails over automatically while the console is down."
      actions={<Badge tone={current ? 'good' : 'neutral'}>{current ? 'on' : 'off'}</Badge>}
    >
      <div className="flex flex-col gap-4">
        {blockers.length > 0 ? (
          <Alert
            tone={current ? 'warn' : 'info'}
            title={
              current ? 'An automatic failover would not be safe' : 'Required before it can be turned on'
            }
          >
            <ul className="flex list-disc flex-col gap-1 pl-4">
              {blockers.map((b) => (
                <li key={`${b.code} ${b.message}`}>
                  {doubtSentences(b)} {b.hint}
                </li>
              ))}
            </ul>
          </Alert>
        ) : current && shortage && !cluster.automaticWord ? (
          <Alert tone="warn" title="No automatic failover at the moment">
            {doubtSentences(shortage)}
          </Alert>
        ) : cluster.synchronous ? (
          <p className="text-sm text-ink-muted">{quorumWords(cluster.synchronous)}</p>
        ) : null}
        {last ? (
          <p className="text-sm text-ink-muted">
            Last one:{' '}
            <OperationLink operationId={last.operationId}>{`Failover to ${last.promoted}`}</OperationLink>{' '}
            {lastWords[last.state]}, <Age at={last.createdAt} />.
          </p>
        ) : null}
        <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
          <Field
            label="Failover delay (seconds)"
            hint="How long both must report the primary lost"
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
            label="Minimum interval (minutes)"
            hint="Between two automatic failovers"
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
            label="Isolation timeout (seconds)"
            hint="How long neither a standby nor the console reaches the primary"
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
          <Field
            label="Isolated primary"
            hint="What its agent does then, after it has disconnected all clients"
          >
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
        </div>
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

/** Who has to report the primary lost, and what that rule costs. */
function quorumWords(synchronous: SynchronousStandbys): string {
  const quorum = isolationQuorum(synchronous)
  const listed = synchronous.instanceIds.length
  const all = quorum === listed
  const who = all ? (listed === 2 ? 'Both' : `All ${listed}`) : `${quorum} of ${listed}`
  const price = all
    ? `While ${listed === 2 ? 'either' : 'any'} of them is unreachable, the cluster does not fail over automatically.`
    : `Commits wait while fewer than ${synchronous.count} of them are connected.`
  return `${who} synchronous standbys must report that they lost the primary: it can then acknowledge no commit. ${price}`
}

const lastWords: Record<OperationState, string> = {
  queued: 'is queued',
  running: 'is running',
  cancelling: 'is being cancelled',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'was cancelled',
}
