'use client'
import { PersonName } from '@floe/domain'
import { Button, Card, FaultAlert, Field, Input, useToast } from '@floe/ui'
import { useMutation } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { type FormEvent, useState } from 'react'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useAccount } from '../console/account-context'

/** The name that stands beside everything its owner does. */
export function NameCard() {
  const account = useAccount()
  const trpc = useTRPC()
  const toast = useToast()
  const router = useRouter()
  const [name, setName] = useState(account.name)
  const [error, setError] = useState<string>()
  const rename = useMutation(
    trpc.account.rename.mutationOptions({
      onSuccess: ({ name: kept }) => {
        setName(kept)
        toast({ title: 'Name changed' })
        // the shell shows it, too
        router.refresh()
      },
    }),
  )

  function submit(event: FormEvent) {
    event.preventDefault()
    const parsed = PersonName.safeParse(name)
    setError(parsed.error?.issues[0]?.message)
    if (parsed.success) rename.mutate({ name: parsed.data })
  }

  return (
    <Card title="Name" description="Shown beside your operations, setting changes and audit events.">
      <form className="flex flex-col gap-3" onSubmit={submit} noValidate>
        {rename.error ? <FaultAlert fault={faultOf(rename.error)} /> : null}
        <Field label="Name" error={error}>
          {(control) => (
            <Input
              {...control}
              name="name"
              autoComplete="name"
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <div>
          <Button type="submit" busy={rename.isPending} disabled={name.trim() === account.name}>
            Change name
          </Button>
        </div>
      </form>
    </Card>
  )
}
