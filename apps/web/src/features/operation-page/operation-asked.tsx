import {
  formatLimit,
  LimitChanges,
  limitNames,
  limitRecord,
  MemberSettings,
  type OperationKind,
  operationRecord,
  SettingChange,
  switchoverProof,
  Verdict,
} from '@floe/domain'
import { Alert, KeyValue } from '@floe/ui'
import type { ReactNode } from 'react'
import { z } from 'zod'
import { VerdictView } from '../cluster/held-wal'
import { flashbackOutcome } from '../flashback/flashback-outcome'
import type { OperationDetail } from '../operation/use-operation'
import { changeInWords, confirmedIn } from '../setting/confirmed-changes'

/** What a part of an operation's input is called, by its record; its own name where that says nothing. */
const titleOf = (kind: OperationKind, field: string): string =>
  (operationRecord(kind).input.shape[field] as z.ZodType | undefined)?.meta()?.title ?? field

/** Said elsewhere on the page, or only a form of it. */
const left = new Set(['instanceId', 'clusterId', 'confirmName', 'because'])

function Code({ children }: { children: ReactNode }) {
  return <code className="font-mono text-[13px] break-words whitespace-pre-wrap">{children}</code>
}

/** A value of an operation's input in the form that suits it: settings as lines, anything unknown as JSON. */
function show(value: unknown): ReactNode {
  const limits = LimitChanges.strict().safeParse(value)
  if (limits.success) return <Code>{limitLines(limits.data)}</Code>
  if (typeof value === 'string' || typeof value === 'number') return <Code>{value}</Code>
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  const names = z.array(z.string()).safeParse(value)
  if (names.success) return <Code>{names.data.join(', ')}</Code>
  const changes = z.array(SettingChange).safeParse(value)
  if (changes.success)
    return <Code>{changes.data.map((c) => `${c.name} = ${c.value ?? 'default'}`).join('\n')}</Code>
  const members = z.array(MemberSettings).safeParse(value)
  if (members.success) return <Code>{memberLines(members.data)}</Code>
  const settings = z.record(z.string(), z.string()).safeParse(value)
  if (settings.success) {
    const lines = Object.entries(settings.data).map(([name, text]) => `${name} = ${text}`)
    return lines.length === 0 ? 'none' : <Code>{lines.join('\n')}</Code>
  }
  return <Code>{JSON.stringify(value, null, 1)}</Code>
}

const limitLines = (changes: LimitChanges): string =>
  limitNames
    .flatMap((name) => {
      const value = changes[name]
      return value === undefined ? [] : `${limitRecord(name).title}: ${formatLimit(name, value)}`
    })
    .join('\n') || 'none'

/** What is asked of every member alike once, of single ones with the beginning of their id. */
function memberLines(members: MemberSettings[]): string {
  const lines = (m: MemberSettings) => m.changes.map((c) => `${c.name} = ${c.value ?? 'default'}`).join('\n')
  const [first, ...others] = members
  if (first && others.every((m) => lines(m) === lines(first))) return `on all members\n${lines(first)}`
  return members.map((m) => `on ${m.instanceId.slice(0, 8)}…\n${lines(m)}`).join('\n')
}

/** The standbys that a commit of the former primary needs have left it. */
const unconfirmed = (verdict: Verdict) => verdict.kind === 'proven' && verdict.proof.covers === 'standbys'

/** Of a failover. */
const Judged = z.object({ verdict: Verdict, fenced: z.boolean() })
/** Of what the controller decided automatically. */
const Decided = z.object({ because: z.array(z.string()).min(1) })

/** What was asked for, and what came out of it. */
export function OperationAsked({ operation }: { operation: OperationDetail }) {
  const asked = Object.entries(operation.input).filter(
    ([key, value]) =>
      !left.has(key) &&
      value !== null &&
      value !== undefined &&
      !(Array.isArray(value) && value.length === 0),
  )
  const confirmed = confirmedIn(operation.result)
  const judged = Judged.safeParse(operation.result)
  const flashback = flashbackOutcome(operation)
  const decided = Decided.safeParse(operation.input)
  const proof =
    operation.kind === 'switchover-cluster' && operation.state === 'succeeded'
      ? switchoverProof(operation.result, operation.instanceName ?? 'the candidate')
      : null
  return (
    <div className="flex flex-col gap-4">
      {decided.success ? (
        <div className="flex min-w-0 flex-col gap-2">
          <h3 id="decided-why" className="text-xs text-ink-muted">
            Why it was decided
          </h3>
          <ul aria-labelledby="decided-why" className="list-disc pl-4 break-words">
            {decided.data.because.map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
          </ul>
        </div>
      ) : null}
      {judged.success ? (
        <div className="flex min-w-0 flex-col gap-3">
          <h3 className="text-xs text-ink-muted">Verdict</h3>
          <VerdictView verdict={judged.data.verdict} candidate={operation.instanceName ?? 'the candidate'} />
          {judged.data.fenced ? null : (
            <Alert tone="warn" title="The former primary was not fenced">
              Its host was unreachable. It is fenced as soon as the host answers; until then clients may still
              reach it{unconfirmed(judged.data.verdict) ? ', but no standby confirms their commits' : ''}.
            </Alert>
          )}
        </div>
      ) : null}
      {proof ? (
        <div className="flex min-w-0 flex-col gap-2">
          <h3 className="text-xs text-ink-muted">Proof</h3>
          <p className="font-medium break-words">{proof[0]}</p>
          <ul className="list-disc pl-4 break-words text-ink-muted">
            {proof.slice(1).map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
          </ul>
        </div>
      ) : null}
      <KeyValue
        items={[
          { label: 'Kind', value: <Code>{operation.kind}</Code> },
          ...(operation.instanceName ? [{ label: 'Instance', value: operation.instanceName }] : []),
          ...asked.map(([key, value]) => ({ label: titleOf(operation.kind, key), value: show(value) })),
        ]}
      />
      {flashback}
      {judged.success || flashback ? null : confirmed ? (
        <div>
          <h3 className="mb-1 text-xs text-ink-muted">
            {confirmed.some((c) => c.member) ? 'Confirmed by every member' : 'Confirmed by the instance'}
          </h3>
          <ul>
            {confirmed.map((change) => (
              <li key={`${change.member} ${change.name}`}>
                {change.member ? `${change.member}: ` : ''}
                <Code>{changeInWords(change)}</Code>
                {change.pendingRestart ? ' (in force after a restart)' : ''}
              </li>
            ))}
          </ul>
        </div>
      ) : operation.result && Object.keys(operation.result).length > 0 ? (
        <div>
          <h3 className="mb-1 text-xs text-ink-muted">Result</h3>
          <Code>{JSON.stringify(operation.result, null, 1)}</Code>
        </div>
      ) : null}
      <KeyValue
        items={[{ label: 'Operation id', value: <Code>{operation.operationId}</Code> }]}
        className="block"
      />
    </div>
  )
}
