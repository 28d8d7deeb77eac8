import { ConfirmedSetting, type OperationId } from '@floe/domain'
import { Alert, Badge } from '@floe/ui'
import { z } from 'zod'
import { OperationLink } from '../operation/operation-link'

/** What a change-settings operation answers; a part of the operation's result. */
export const Confirmed = z.object({ confirmed: z.array(ConfirmedSetting) })
/** `work_mem: 4MB → 8MB` */
export function changeInWords({ name, oldValue, newValue }: ConfirmedSetting) {
  return oldValue === newValue
    ? `${name}: ${newValue ?? 'default'}, as before`
    : `${name}: ${oldValue ?? 'default'} → ${newValue ?? 'default'}`
}

export type ConfirmedChanges = z.infer<typeof Confirmed> & { operationId: OperationId }

/** Says which values the instance itself told after they were applied. */
export function ConfirmedAlert({ changes }: { changes: ConfirmedChanges | null }) {
  if (!changes) return null
  return (
    <Alert
      tone="good"
      className="mb-3"
      title="Confirmed by the instance"
      actions={<OperationLink operationId={changes.operationId} />}
    >
      {changes.confirmed.map((change) => (
        <p key={change.name} className="flex flex-wrap items-center gap-x-1.5">
          <code className="font-mono text-[13px] text-ink">{change.name}</code> is{' '}
          <code className="font-mono text-[13px] text-ink">{change.newValue ?? '–'}</code>
          {change.oldValue === change.newValue ? ' already: nothing changed' : null}
          {change.pendingRestart ? <Badge tone="warn">the new value comes with a restart</Badge> : null}
        </p>
      ))}
    </Alert>
  )
}
