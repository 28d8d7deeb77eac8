'use client'
import { operationRecord } from '@floe/domain'
import { useMayChange, viewerHint } from '../console/account-context'
import { useInstance } from '../instance/instance-context'
import { whyNotRunning } from './not-running'

/** Why this person cannot make a table here now; null where nothing is in the way. */
export function useFlashBackHint(): string | null {
  const mayChange = useMayChange()
  const { state, cluster, openOperation } = useInstance()
  if (!mayChange) return viewerHint
  const notRunning = whyNotRunning(state)
  if (notRunning) return notRunning
  if (cluster.memberRole === 'standby') return 'A standby is read-only: flash back on the primary.'
  if (openOperation)
    return `“${operationRecord(openOperation.kind).title}” of this instance has not ended yet.`
  return null
}
