'use client'
import { incidentKindOf } from '@floe/domain'
import { Button, Checkbox, ConfirmDialog } from '@floe/ui'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useId, useState } from 'react'
import type { Incident } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { useMayAdminister } from '../console/account-context'
import { refusalOf } from '../operation/refusal'

/** True of the incidents that end with a person's decision. */
export const isRestored = (incident: Incident) =>
  incident.closedAt === null && incidentKindOf(incident.key)?.action?.dialog === 'accept-restored'

/** Decides on a record that is older than what it is about. */
export function AcceptRestored({ incident }: { incident: Incident }) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const mayAdminister = useMayAdminister()
  const [asking, setAsking] = useState(false)
  const [asRecorded, setAsRecorded] = useState(false)
  const recordedId = useId()
  const about = incidentKindOf(incident.key)?.ids[0] ?? ''
  const accept = useMutation(
    trpc.controlDatabase.acceptRestored.mutationOptions({
      onSuccess: () => {
        setAsking(false)
        void queries.invalidateQueries({ queryKey: trpc.incident.pathKey() })
      },
    }),
  )
  return (
    <>
      <Button
        size="small"
        className="self-start"
        disabled={!mayAdminister}
        title={mayAdminister ? undefined : 'An owner or admin decides.'}
        aria-label={`Accept: ${incident.title}`}
        onClick={() => setAsking(true)}
      >
        Accept…
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={(open) => {
          if (open) return
          setAsking(false)
          accept.reset()
        }}
        title={
          about === 'all' ? 'Accept the restored control database?' : 'Accept the record of this cluster?'
        }
        confirmLabel="Accept"
        busy={accept.isPending}
        {...refusalOf(accept.error)}
        onConfirm={() =>
          accept.mutate({
            ...(about === 'all' ? {} : { cluster: about }),
            as: asRecorded ? 'recorded' : 'reported',
          })
        }
      >
        <p>
          Operations can start again. The primary of each cluster is taken from its members’ reports, where
          these prove it. Operations that were open in the backup are ended.
        </p>
        <div className="mt-2 flex items-center gap-2">
          <Checkbox
            id={recordedId}
            checked={asRecorded}
            onCheckedChange={(checked) => setAsRecorded(checked === true)}
          />
          <label htmlFor={recordedId} className="text-ink">
            Keep the record instead: the members’ reports are wrong
          </label>
        </div>
      </ConfirmDialog>
    </>
  )
}
