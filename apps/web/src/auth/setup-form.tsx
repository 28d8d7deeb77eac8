'use client'
import type { Fault } from '@floe/domain'
import { Button, Card, FaultAlert, Field, Input, useHydrated } from '@floe/ui'
import { type FormEvent, useState } from 'react'
import { PASSPHRASE_MIN, SetupCompleteInput } from '@/server/routers/setup/setup.types'
import { useTRPCClient } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { signIn } from './session-client'

type Entry = 'name' | 'email' | 'passphrase'
type Errors = Partial<Record<Entry, string>>

/** Makes the owner by the one-time link and signs them in. */
export function SetupForm({ token }: { token: string }) {
  const client = useTRPCClient()
  const [errors, setErrors] = useState<Errors>({})
  const [fault, setFault] = useState<Fault | null>(null)
  const [busy, setBusy] = useState(false)
  const hydrated = useHydrated()

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const form = Object.fromEntries(new FormData(event.currentTarget)) as Record<Entry, string>
    const parsed = SetupCompleteInput.safeParse({ token, ...form })
    const found: Errors = {}
    for (const issue of parsed.error?.issues ?? []) found[issue.path[0] as Entry] ??= issue.message
    setErrors(found)
    setFault(null)
    if (!parsed.success) return
    setBusy(true)
    try {
      await client.setup.complete.mutate(parsed.data)
      const refused = await signIn(parsed.data.email, parsed.data.passphrase)
      location.assign(refused ? '/sign-in' : '/instances')
    } catch (error) {
      setFault(faultOf(error))
      setBusy(false)
    }
  }

  return (
    <Card className="w-full max-w-sm">
      <h1 className="text-lg font-semibold text-ink">Set up Floe</h1>
      <p className="mt-0.5 mb-3 text-sm text-ink-muted">
        You become the owner of this installation. This link works once.
      </p>
      <form className="flex flex-col gap-3" method="post" onSubmit={submit} noValidate>
        {fault ? <FaultAlert fault={fault} /> : null}
        <Field label="Name" error={errors.name}>
          {(control) => <Input {...control} name="name" autoComplete="name" autoFocus />}
        </Field>
        <Field label="E-mail" hint="You sign in with it; Floe sends no mail." error={errors.email}>
          {(control) => <Input {...control} name="email" type="email" autoComplete="username" />}
        </Field>
        <Field label="Passphrase" hint={`At least ${PASSPHRASE_MIN} characters.`} error={errors.passphrase}>
          {(control) => <Input {...control} name="passphrase" type="password" autoComplete="new-password" />}
        </Field>
        <Button type="submit" variant="primary" busy={busy} disabled={!hydrated}>
          Create owner
        </Button>
      </form>
    </Card>
  )
}
