'use client'
import { Alert, Button, ConfirmDialog } from '@floe/ui'
import { useState } from 'react'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { refusalOf } from '../operation/refusal'
import { useInstance } from './instance-context'
import { useInstanceVerbs } from './use-instance-verbs'

/** For an instance that the agent of its host, which answers, does not know any more. */
export function AdoptNotice() {
  const { instanceId, name, state, hostName, hostState, creationFailed, openOperation } = useInstance()
  const { adopt } = useInstanceVerbs(name)
  const mayChange = useMayChange()
  const [asking, setAsking] = useState(false)
  const missing = state === 'unknown' && hostState === 'online' && !creationFailed
  // one that was never seen has nothing to be recognised by
  if (!missing || openOperation?.kind === 'create-instance' || openOperation?.kind === 'create-standby')
    return null
  return (
    <Alert
      tone="bad"
      className="mb-3"
      title={`The agent of host “${hostName}” no longer knows this instance`}
      actions={
        <Button
          disabled={!mayChange || openOperation !== null}
          title={mayChange ? undefined : viewerHint}
          onClick={() => setAsking(true)}
        >
          Adopt
        </Button>
      }
    >
      Its directory or the agent’s own state was removed. A running engine continues, unobserved. If the
      directory still exists, Adopt registers the instance again.
      <ConfirmDialog
        open={asking}
        onOpenChange={(open) => {
          if (open) return
          setAsking(false)
          adopt.reset()
        }}
        title={`Adopt ${name}?`}
        confirmLabel="Adopt"
        busy={adopt.isPending}
        {...refusalOf(adopt.error)}
        onConfirm={() =>
          adopt.mutate(
            { instanceId, idempotencyKey: newIdempotencyKey() },
            { onSuccess: () => setAsking(false) },
          )
        }
      >
        The agent verifies by user, system identifier and port that the directory is this instance’s, and
        takes over its engine without a restart. A stopped engine is not started. If anything does not match,
        nothing is changed and the operation reports the difference.
      </ConfirmDialog>
    </Alert>
  )
}
