'use client'
import { formatDuration, HostName } from '@floe/domain'
import { Alert, Button, Copyable, Dialog, FaultAlert, Field, Input, useNow } from '@floe/ui'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import Link from 'next/link'
import { useState } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { administratorHint, useMayAdminister } from '../console/account-context'

type Added = RouterOutputs['host']['add']

/**
 * A button that asks for a host's name and answers with the one command to run there. `again`: enrols an existing host
 * again.
 */
export function AddHost({ again }: { again?: { name: string } }) {
  const [open, setOpen] = useState(false)
  const mayAdminister = useMayAdminister()
  return (
    <>
      <Button
        variant={again ? 'secondary' : 'primary'}
        disabled={!mayAdminister}
        title={mayAdminister ? undefined : administratorHint}
        onClick={() => setOpen(true)}
      >
        {again ? null : <Plus aria-hidden />}
        {again ? 'Enrol again' : 'Add host'}
      </Button>
      <Dialog
        open={open}
        onOpenChange={setOpen}
        title={again ? `Enrol ${again.name} again` : 'Add host'}
        description={
          again
            ? 'It gets a new key and certificate; the former ones are no longer accepted. Its instances stay.'
            : 'A host is a machine with an agent. It gets a certificate of this installation by a one-time token.'
        }
      >
        {/* mounted with the dialog: a token is shown once and then gone */}
        <AddHostForm again={again} onClose={() => setOpen(false)} />
      </Dialog>
    </>
  )
}

function AddHostForm({ again, onClose }: { again?: { name: string }; onClose: () => void }) {
  const trpc = useTRPC()
  const [name, setName] = useState(again?.name ?? '')
  const [nameError, setNameError] = useState<string | null>(null)
  const add = useMutation(trpc.host.add.mutationOptions())
  if (add.data) return <Waiting added={add.data} onClose={onClose} />
  function submit() {
    const parsed = HostName.safeParse(name.trim())
    if (!parsed.success) {
      setNameError(parsed.error.issues[0]?.message ?? 'is not a name')
      return
    }
    add.mutate({ name: parsed.data, again: again !== undefined })
  }
  return (
    <form
      className="flex flex-col gap-4 pb-2"
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      {again ? null : (
        <Field label="Name" hint="What the host is called here; for example its host name." error={nameError}>
          {(control) => (
            <Input
              {...control}
              autoComplete="off"
              autoCapitalize="off"
              spellCheck={false}
              maxLength={80}
              value={name}
              onChange={(event) => {
                setName(event.target.value)
                setNameError(null)
              }}
            />
          )}
        </Field>
      )}
      {add.error ? <FaultAlert fault={faultOf(add.error)} /> : null}
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" variant="primary" busy={add.isPending}>
          Get a token
        </Button>
      </div>
    </form>
  )
}

/** The command, and what has come of it: waits until the host's agent has asked and answers. */
function Waiting({ added, onClose }: { added: Added; onClose: () => void }) {
  const trpc = useTRPC()
  const now = useNow()
  const { data } = useQuery(trpc.host.list.queryOptions(undefined, { refetchInterval: 1_000 }))
  const enrolment = data?.enrolments.find((e) => e.enrolmentId === added.enrolmentId)
  const host = data?.hosts.find((h) => h.hostId === added.hostId)
  // it is in the list of those that are waited for until it is enrolled
  const enrolled = data !== undefined && enrolment === undefined && host !== undefined
  const leftMs = now === null ? null : Math.max(0, added.expiresAt - now)
  return (
    <div className="flex flex-col gap-4 pb-2">
      <p className="text-sm text-ink-muted">
        Run this on the host, in a checkout of Floe. The token is shown only now and is valid for one host.
      </p>
      <Copyable text={added.command} what="the command" testId="enrol-command" />
      {added.onlyLocal ? (
        <Alert tone="warn" title="Only this machine reaches the console">
          Its address is a loopback address. For a host on another machine, run{' '}
          <code className="font-mono">./floe up --listen ADDRESS</code> first, or put the console behind a
          proxy. A second host on this machine needs a FLOE_HOME of its own.
        </Alert>
      ) : null}
      {enrolled && host.state === 'online' ? (
        <Alert tone="good" title={`${added.name} is enrolled`}>
          Its agent {host.agentVersion} answers at {host.agentUrl}.
        </Alert>
      ) : enrolled ? (
        <Alert title={`${added.name} has its certificate`}>Waiting for its agent to answer.</Alert>
      ) : enrolment?.fault ? (
        <FaultAlert fault={enrolment.fault} />
      ) : enrolment?.state === 'expired' || leftMs === 0 ? (
        <Alert tone="warn" title="The token has expired">
          It was not used. Close this dialog and get another one.
        </Alert>
      ) : (
        <Alert title={`Waiting for ${added.name}`}>
          The token is good for {leftMs === null ? '15 min' : formatDuration(leftMs)}.
        </Alert>
      )}
      <div className="flex justify-end gap-2">
        {enrolled ? (
          <Button variant="primary" asChild>
            <Link href={`/hosts/${encodeURIComponent(added.name)}`} onClick={onClose}>
              Open {added.name}
            </Link>
          </Button>
        ) : null}
        <Button onClick={onClose}>Close</Button>
      </div>
    </div>
  )
}
