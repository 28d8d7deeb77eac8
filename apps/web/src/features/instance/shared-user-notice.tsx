'use client'
import { Alert, Button, ConfirmDialog } from '@floe/ui'
import { useState } from 'react'
import { useMayChange, viewerHint } from '../console/account-context'
import { newIdempotencyKey } from '../console/idempotency-key'
import { refusalOf } from '../operation/refusal'
import { useInstance } from './instance-context'
import { useInstanceVerbs } from './use-instance-verbs'

/** For an instance that shares a user of the operating system with others although its host could separate them. */
export function SharedUserNotice() {
  const { instanceId, name, user, openOperation } = useInstance()
  const { separate } = useInstanceVerbs(name)
  const mayChange = useMayChange()
  const [asking, setAsking] = useState(false)
  if (!user?.separable || user.own) return null
  return (
    <Alert
      tone="warn"
      className="mb-3"
      title="This instance shares its OS user with other instances"
      actions={
        <Button
          disabled={!mayChange || openOperation !== null}
          title={mayChange ? undefined : viewerHint}
          onClick={() => setAsking(true)}
        >
          Separate
        </Button>
      }
    >
      A superuser of this instance can read and change the files of every instance that runs as OS user “
      {user.name}”. Separate gives it an OS user of its own.
      <ConfirmDialog
        open={asking}
        onOpenChange={(open) => {
          if (open) return
          setAsking(false)
          separate.reset()
        }}
        title={`Separate ${name}?`}
        confirmLabel="Separate"
        busy={separate.isPending}
        {...refusalOf(separate.error)}
        onConfirm={() =>
          separate.mutate(
            { instanceId, idempotencyKey: newIdempotencyKey() },
            { onSuccess: () => setAsking(false) },
          )
        }
      >
        The instance restarts: sessions end, and clients cannot connect until it is up again. Its files change
        their owner to a new OS user. Data, settings, port and connection strings stay the same.
      </ConfirmDialog>
    </Alert>
  )
}
