'use client'
import { Alert, Button, Card, FaultAlert, Field, Input, useHydrated } from '@floe/ui'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { Passphrase } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { passphraseStrength } from './passphrase-strength'

type Entry = 'current' | 'next' | 'again'
const empty: Record<Entry, string> = { current: '', next: '', again: '' }

/** Changes the passphrase; every other session ends with the old one. */
export function PassphraseCard() {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const [entries, setEntries] = useState(empty)
  const [errors, setErrors] = useState<Partial<typeof empty>>({})
  const hydrated = useHydrated()
  const change = useMutation(
    trpc.account.changePassphrase.mutationOptions({
      onSuccess: () => {
        setEntries(empty)
        void queryClient.invalidateQueries(trpc.account.sessions.pathFilter())
      },
    }),
  )

  function submit(event: FormEvent) {
    event.preventDefault()
    const next = Passphrase.safeParse(entries.next).error?.issues[0]?.message
    const found: Partial<typeof empty> = {
      ...(entries.current === '' ? { current: 'must not be empty' } : {}),
      ...(next === undefined ? {} : { next }),
      ...(entries.again === entries.next ? {} : { again: 'must be the same as the new passphrase' }),
    }
    setErrors(found)
    if (Object.keys(found).length === 0) change.mutate({ current: entries.current, next: entries.next })
  }

  const strength = passphraseStrength(entries.next)
  const entry = (which: Entry, autoComplete: string) => ({
    name: which,
    type: 'password',
    autoComplete,
    value: entries[which],
    onChange: (event: { target: { value: string } }) =>
      setEntries((before) => ({ ...before, [which]: event.target.value })),
  })
  const ended = change.data?.endedSessions ?? 0
  return (
    <Card title="Passphrase" description="A new passphrase ends your sessions in all other browsers.">
      <form className="flex flex-col gap-3" method="post" onSubmit={submit} noValidate>
        {change.error ? <FaultAlert fault={faultOf(change.error)} /> : null}
        {change.data ? (
          <Alert tone="good" title="Passphrase changed">
            {ended === 0
              ? 'You had no other sessions.'
              : `${ended} other ${ended === 1 ? 'session was' : 'sessions were'} ended.`}
          </Alert>
        ) : null}
        <Field label="Current passphrase" error={errors.current}>
          {(control) => <Input {...control} {...entry('current', 'current-password')} />}
        </Field>
        <Field
          label="New passphrase"
          hint={entries.next === '' ? strength.hint : `Strength: ${strength.word}. ${strength.hint}`}
          error={errors.next}
        >
          {(control) => <Input {...control} {...entry('next', 'new-password')} />}
        </Field>
        <Field label="Repeat new passphrase" error={errors.again}>
          {(control) => <Input {...control} {...entry('again', 'new-password')} />}
        </Field>
        <div>
          <Button type="submit" busy={change.isPending} disabled={!hydrated}>
            Change passphrase
          </Button>
        </div>
      </form>
    </Card>
  )
}
