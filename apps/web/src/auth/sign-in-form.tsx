'use client'
import type { Fault } from '@floe/domain'
import { Button, Card, FaultAlert, Field, Input, useHydrated } from '@floe/ui'
import { type FormEvent, useState } from 'react'
import { signIn } from './session-client'

/** E-mail address and passphrase; leads on to `next`. */
export function SignInForm({ next }: { next: string }) {
  const [fault, setFault] = useState<Fault | null>(null)
  const [busy, setBusy] = useState(false)
  const hydrated = useHydrated()

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    setBusy(true)
    setFault(null)
    const refused = await signIn(String(form.get('email')), String(form.get('passphrase')))
    if (refused) {
      setFault(refused)
      setBusy(false)
      return
    }
    // a whole new page: nothing of the session before may stay in memory
    location.assign(next)
  }

  return (
    <Card className="w-full max-w-sm">
      <h1 className="mb-3 text-lg font-semibold text-ink">Sign in</h1>
      <form className="flex flex-col gap-3" method="post" onSubmit={submit}>
        {fault ? <FaultAlert fault={fault} /> : null}
        <Field label="E-mail">
          {(control) => (
            <Input {...control} name="email" type="email" autoComplete="username" required autoFocus />
          )}
        </Field>
        <Field label="Passphrase">
          {(control) => (
            <Input {...control} name="passphrase" type="password" autoComplete="current-password" required />
          )}
        </Field>
        <Button type="submit" variant="primary" busy={busy} disabled={!hydrated}>
          Sign in
        </Button>
      </form>
    </Card>
  )
}
