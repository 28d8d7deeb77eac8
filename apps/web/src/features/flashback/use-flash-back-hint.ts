'use client'
import { operationRecord } from '@floe/domain'
import { useMayChange, viewerHint } from '../console/account-context'
import { useInstance } from '../instance/instance-context'

/** Why this person cannot make a table here now; null where nothing is in the way. */
export function useFlashBackHint(): string | null {
  const mayChange = useMayChange()
  const { state, cluster, openOperation } = useInstance()
  if (!mayChange) return viewerHint
  if (state !== 'running') return 'The instance does not run.'
  if (cluster.memberRole === 'standby') return 'A standby is read-only: flash back on the primary.'
  if (openOperation)
    return `“${operationRecord(openOperation.kind).title}” of this instance has not ended yet.`
  return null
}
