'use client'
import { TOKEN_DAYS_DEFAULT, TokenRole } from '@floe/domain'
import {
  Age,
  Alert,
  Badge,
  Button,
  Card,
  CopyButton,
  FaultAlert,
  Field,
  Input,
  Moment,
  Select,
  SkeletonRows,
} from '@floe/ui'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { type RouterOutputs, TokenCreateInput } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useAccount } from '../console/account-context'

type Token = RouterOutputs['token']['list']['tokens'][number]

/** How long a token lives, in days. */
const lives = [1, 7, TOKEN_DAYS_DEFAULT, 90, 366]
const dayWords = (days: number) => (days === 1 ? '1 day' : days === 366 ? '1 year' : `${days} days`)

/** Tokens with which programs use the API of the console. */
export function TokensCard() {
  const { role } = useAccount()
  const trpc = useTRPC()
  const queries = useQueryClient()
  const mayMake = role !== 'viewer'
  const sees = role === 'owner' || role === 'admin'
  const query = useQuery(trpc.token.list.queryOptions(undefined, { enabled: mayMake }))
  const refresh = () => void queries.invalidateQueries(trpc.token.pathFilter())
  const tokens = query.data?.tokens
  return (
    <Card
      title="API tokens"
      description={`For programs that use the console’s API${sees ? '; as an admin you see everybody’s' : ''}. A token can never do more than the person who created it.`}
      bodyClassName="p-0"
    >
      {!mayMake ? (
        <p className="px-4 py-3 text-sm text-ink-muted">
          Operators, admins and owners can create API tokens.
        </p>
      ) : query.error && !tokens ? (
        <FaultAlert className="m-3" fault={faultOf(query.error)} onRetry={() => void query.refetch()} />
      ) : tokens === undefined ? (
        <div className="px-4 py-3">
          <SkeletonRows rows={2} label="Loading API tokens" />
        </div>
      ) : (
        <>
          {tokens.length === 0 ? (
            <p className="px-4 py-3 text-sm text-ink-muted">No API tokens.</p>
          ) : (
            <ul aria-label="API tokens">
              {tokens.map((token) => (
                <TokenRow key={token.tokenId} token={token} onSettled={refresh} />
              ))}
            </ul>
          )}
          <NewToken onCreated={refresh} />
        </>
      )}
    </Card>
  )
}

function TokenRow({ token, onSettled }: { token: Token; onSettled: () => void }) {
  const trpc = useTRPC()
  const revoke = useMutation(trpc.token.revoke.mutationOptions({ onSettled }))
  return (
    <li className="border-t border-line px-4 py-3 first:border-0">
      <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
        <div className="min-w-0">
          <p className="flex flex-wrap items-center gap-2 text-sm font-medium break-words text-ink">
            {token.name}
            <Badge tone={token.role === 'admin' ? 'warn' : 'neutral'}>{token.role}</Badge>
            {token.expired ? <Badge tone="bad">expired</Badge> : null}
          </p>
          <p className="text-xs text-ink-muted">
            by {token.madeByName} · {token.expired ? 'expired' : 'expires'} <Moment at={token.expiresAt} /> ·{' '}
            {token.lastUsedAt === null ? (
              'never used'
            ) : (
              <>
                last used <Age at={token.lastUsedAt} />
              </>
            )}
          </p>
        </div>
        <Button
          size="small"
          variant="danger-quiet"
          busy={revoke.isPending}
          aria-label={`Revoke ${token.name}`}
          onClick={() => revoke.mutate({ tokenId: token.tokenId })}
        >
          Revoke
        </Button>
      </div>
      {revoke.error ? <FaultAlert className="mt-2" fault={faultOf(revoke.error)} /> : null}
    </li>
  )
}

function NewToken({ onCreated }: { onCreated: () => void }) {
  const { role: own } = useAccount()
  const trpc = useTRPC()
  const [name, setName] = useState('')
  const [role, setRole] = useState<TokenRole>('viewer')
  const [days, setDays] = useState(TOKEN_DAYS_DEFAULT)
  const [error, setError] = useState<string>()
  const create = useMutation(
    trpc.token.create.mutationOptions({
      onSuccess: () => {
        setName('')
        onCreated()
      },
    }),
  )
  const roles = own === 'operator' ? TokenRole.options.filter((r) => r !== 'admin') : TokenRole.options

  function submit(event: FormEvent) {
    event.preventDefault()
    const parsed = TokenCreateInput.safeParse({ name, role, days })
    setError(parsed.error?.issues[0]?.message)
    if (parsed.success) create.mutate(parsed.data)
  }

  return (
    <div className="flex flex-col gap-3 border-t border-line px-4 py-3">
      {create.data && !create.isPending ? (
        <Alert
          tone="good"
          title="The new token, shown this once"
          actions={<CopyButton text={create.data.secret} what="token" showLabel />}
        >
          <code className="font-mono text-[13px] break-all text-ink">{create.data.secret}</code>
        </Alert>
      ) : null}
      <form className="flex flex-wrap items-start gap-2" onSubmit={submit} noValidate>
        <Field label="Token name" error={error} className="min-w-48 flex-1">
          {(control) => (
            <Input
              {...control}
              value={name}
              autoComplete="off"
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <Field label="Role">
          {(control) => (
            <Select {...control} value={role} onChange={(event) => setRole(event.target.value as TokenRole)}>
              {roles.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </Select>
          )}
        </Field>
        <Field label="Expires in">
          {(control) => (
            <Select {...control} value={days} onChange={(event) => setDays(Number(event.target.value))}>
              {lives.map((one) => (
                <option key={one} value={one}>
                  {dayWords(one)}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Button type="submit" className="mt-6" busy={create.isPending} disabled={name.trim() === ''}>
          Create token
        </Button>
      </form>
      {create.error ? <FaultAlert fault={faultOf(create.error)} /> : null}
    </div>
  )
}
