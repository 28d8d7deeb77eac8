import { ConfirmedSetting, type OperationId } from '@floe/domain'
import { Alert, Badge } from '@floe/ui'
import { z } from 'zod'
import { OperationLink } from '../operation/operation-link'

/** A setting as a member confirmed it; `member` is null where one instance was changed. */
export type MemberConfirmed = ConfirmedSetting & { member: string | null }

const OfInstance = z.object({ confirmed: z.array(ConfirmedSetting) })
const OfMembers = z.object({ members: z.record(z.string(), z.array(ConfirmedSetting)) })

/** What instances confirmed of changes of settings, as an operation's result says it; null where it says nothing of them. */
export function confirmedIn(result: unknown): MemberConfirmed[] | null {
  const one = OfInstance.safeParse(result)
  if (one.success) return one.data.confirmed.map((c) => ({ ...c, member: null }))
  const all = OfMembers.safeParse(result)
  if (!all.success) return null
  return Object.entries(all.data.members).flatMap(([member, changes]) =>
    changes.map((c) => ({ ...c, member })),
  )
}

/** `work_mem: 4MB → 8MB` */
export function changeInWords({ name, oldValue, newValue }: ConfirmedSetting) {
  return oldValue === newValue
    ? `${name}: ${newValue ?? 'default'}, as before`
    : `${name}: ${oldValue ?? 'default'} → ${newValue ?? 'default'}`
}

export type ConfirmedChanges = { confirmed: MemberConfirmed[]; operationId: OperationId }

/** Says which values the instances themselves reported after they were applied. */
export function ConfirmedAlert({ changes }: { changes: ConfirmedChanges | null }) {
  if (!changes) return null
  const members = new Set(changes.confirmed.map((c) => c.member))
  return (
    <Alert
      tone="good"
      className="mb-3"
      title={members.size > 1 ? 'Confirmed by every member' : 'Confirmed by the instance'}
      actions={<OperationLink operationId={changes.operationId} />}
    >
      {changes.confirmed.map((change) => (
        <p key={`${change.member} ${change.name}`} className="flex flex-wrap items-center gap-x-1.5">
          {members.size > 1 ? <span>{change.member}:</span> : null}
          <code className="font-mono text-[13px] text-ink">{change.name}</code> is{' '}
          <code className="font-mono text-[13px] text-ink">{change.newValue ?? '–'}</code>
          {change.oldValue === change.newValue ? ' already: nothing changed' : null}
          {change.pendingRestart ? <Badge tone="warn">the new value comes with a restart</Badge> : null}
        </p>
      ))}
    </Alert>
  )
}
