'use client'
import { PowerSupply } from '@floe/domain'
import { Button, Card, FaultAlert, Field, Input, useToast } from '@floe/ui'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { administratorHint, useMayAdminister } from '../console/account-context'

type Host = RouterOutputs['host']['show']['host']

/** What the host gets its power from, as a person names it: no machine can know it. */
export function PowerSupplyCard({ host }: { host: Host }) {
  const trpc = useTRPC()
  const toast = useToast()
  const queries = useQueryClient()
  const mayAdminister = useMayAdminister()
  // null: nothing was typed, what is stored shows
  const [typed, setTyped] = useState<string | null>(null)
  const [error, setError] = useState<string>()
  const name = typed ?? host.powerSupply ?? ''
  const change = useMutation(
    trpc.host.powerSupply.mutationOptions({
      onSuccess: async () => {
        toast({ title: 'Power supply changed' })
        await queries.invalidateQueries(trpc.host.pathFilter())
        setTyped(null)
      },
    }),
  )

  function submit(event: FormEvent) {
    event.preventDefault()
    const parsed = PowerSupply.nullable().safeParse(name.trim() === '' ? null : name)
    setError(parsed.error?.issues[0]?.message)
    if (parsed.success) change.mutate({ hostId: host.hostId, powerSupply: parsed.data })
  }

  return (
    <Card
      title="Power supply"
      description="Hosts with the same one fail together. Used where a page torn by a crash is repaired from another host."
    >
      <form className="flex max-w-md flex-col gap-3" onSubmit={submit} noValidate>
        {change.error ? <FaultAlert fault={faultOf(change.error)} /> : null}
        <Field
          label="Power supply"
          error={error}
          hint="A name of your own, such as a circuit, a rack or a site. Empty: unknown."
        >
          {(control) => (
            <Input
              {...control}
              name="powerSupply"
              placeholder="unknown"
              value={name}
              disabled={!mayAdminister}
              title={mayAdminister ? undefined : administratorHint}
              onChange={(event) => setTyped(event.target.value)}
            />
          )}
        </Field>
        <div>
          <Button
            type="submit"
            busy={change.isPending}
            disabled={!mayAdminister || name.trim() === (host.powerSupply ?? '')}
            title={mayAdminister ? undefined : administratorHint}
          >
            Change power supply
          </Button>
        </div>
      </form>
    </Card>
  )
}
