'use client'
import type { InstanceId } from '@floe/domain'
import { Button } from '@floe/ui'
import { useState } from 'react'
import { useMayChange, viewerHint } from '../console/account-context'
import { OrderDialog } from '../operation/order-dialog'

/** Asks from when on work without a commit is a stall. */
export function StallLengthButton({
  instanceId,
  name,
  busy,
}: {
  instanceId: InstanceId
  name: string
  /** Another operation has not ended. */
  busy: boolean
}) {
  const mayChange = useMayChange()
  const [open, setOpen] = useState(false)
  return (
    <>
      <Button
        size="small"
        disabled={!mayChange || busy}
        title={mayChange ? (busy ? 'Another operation has not ended yet.' : undefined) : viewerHint}
        onClick={() => setOpen(true)}
      >
        Set length
      </Button>
      <OrderDialog
        kind="set-stall-length"
        instanceId={instanceId}
        name={name}
        open={open}
        onOpenChange={setOpen}
      />
    </>
  )
}
