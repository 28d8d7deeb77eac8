'use client'
import { formatBytes, InstanceName } from '@floe/domain'
import { Button, Dialog, Field, Input, Select } from '@floe/ui'
import { useQuery } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { newIdempotencyKey } from '../console/idempotency-key'
import { Refusal } from '../operation/refusal'
import { type ClusterDetail, useClusterVerbs } from './use-cluster'

/** Asks for name and host of a new standby, and follows its operation. */
export function CreateStandby({
  detail,
  open,
  onClose,
}: {
  detail: ClusterDetail
  open: boolean
  onClose: () => void
}) {
  return (
    <Dialog
      open={open}
      onOpenChange={(o) => {
        if (!o) onClose()
      }}
      title="Create a standby"
      description="Copies the primary and follows it. A copy that fails or is cancelled leaves nothing behind."
    >
      <CreateForm detail={detail} onClose={onClose} />
    </Dialog>
  )
}

function nextName(detail: ClusterDetail): string {
  const taken = new Set(detail.cluster.members.map((m) => m.name))
  for (let n = 2; ; n++) {
    const name = `${detail.cluster.name}-${n}`
    if (!taken.has(name)) return name
  }
}

function CreateForm({ detail, onClose }: { detail: ClusterDetail; onClose: () => void }) {
  const trpc = useTRPC()
  const router = useRouter()
  const verbs = useClusterVerbs()
  const hosts = useQuery(trpc.host.list.queryOptions())
  const [name, setName] = useState(() => nextName(detail))
  const [hostId, setHostId] = useState('')
  const parsed = InstanceName.safeParse(name)
  const used = new Set(detail.cluster.members.map((m) => m.hostId as string))
  return (
    <form
      className="flex flex-col gap-3 pb-3"
      onSubmit={(event) => {
        event.preventDefault()
        if (!parsed.success) return
        const host = hosts.data?.hosts.find((h) => h.hostId === hostId)
        verbs.createStandby.mutate(
          {
            clusterId: detail.cluster.clusterId,
            name: parsed.data,
            ...(host ? { hostId: host.hostId } : {}),
            idempotencyKey: newIdempotencyKey(),
          },
          {
            onSuccess: ({ operationId }) => {
              onClose()
              router.push(`/operations/${operationId}`)
            },
          },
        )
      }}
    >
      <Field
        label="Name"
        error={parsed.success || name === '' ? undefined : `A name ${parsed.error.issues[0]?.message}.`}
      >
        {(control) => <Input {...control} value={name} onChange={(event) => setName(event.target.value)} />}
      </Field>
      <Field
        label="Host"
        hint="A host of its own survives the loss of the primary’s host."
        error={hosts.error ? faultOf(hosts.error).message : undefined}
      >
        {(control) => (
          <Select {...control} value={hostId} onChange={(event) => setHostId(event.target.value)}>
            <option value="">The one with the most free ports</option>
            {(hosts.data?.hosts ?? []).map((h) => {
              const free = Math.max(0, ...(h.facts?.disks ?? []).map((d) => d.freeBytes))
              return (
                <option key={h.hostId} value={h.hostId} disabled={h.state !== 'online'}>
                  {h.name} ({h.state}
                  {h.facts ? `, up to ${formatBytes(free)} free` : ''}
                  {used.has(h.hostId) ? ', has a member already' : ''})
                </option>
              )
            })}
          </Select>
        )}
      </Field>
      {verbs.createStandby.error ? <Refusal error={verbs.createStandby.error} /> : null}
      <div className="flex justify-end gap-2">
        <Button type="button" onClick={onClose}>
          Close
        </Button>
        <Button
          type="submit"
          variant="primary"
          busy={verbs.createStandby.isPending}
          disabled={!parsed.success}
        >
          Create standby
        </Button>
      </div>
    </form>
  )
}
