'use client'
import {
  Age,
  Alert,
  Badge,
  Button,
  Card,
  ConfirmDialog,
  CopyButton,
  Dialog,
  FaultAlert,
  Field,
  Input,
  Moment,
  SkeletonRows,
  Table,
  TableBody,
  TableCell,
  TableHead,
  TableHeader,
  TableRow,
  useToast,
} from '@floe/ui'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { RouterOutputs } from '@/server/api'
import { useTRPC } from '@/trpc/client'
import { faultOf } from '@/trpc/fault'
import { useAccount } from '../console/account-context'

type Webhook = RouterOutputs['webhook']['list']['webhooks'][number]

/** Endpoints notified when an incident opens or resolves. */
export function Webhooks() {
  const trpc = useTRPC()
  const toast = useToast()
  const queries = useQueryClient()
  const { role } = useAccount()
  const mayChange = role === 'owner' || role === 'admin'
  const query = useQuery(trpc.webhook.list.queryOptions(undefined, { refetchInterval: 5_000 }))
  const [url, setUrl] = useState('')
  const [secret, setSecret] = useState<string | null>(null)
  const [shown, setShown] = useState<Webhook | null>(null)
  const [removing, setRemoving] = useState<Webhook | null>(null)
  const refresh = () => void queries.invalidateQueries({ queryKey: trpc.webhook.pathKey() })
  const add = useMutation(
    trpc.webhook.add.mutationOptions({
      onSuccess: (added) => {
        setSecret(added.secret)
        setUrl('')
        refresh()
      },
    }),
  )
  const remove = useMutation(
    trpc.webhook.remove.mutationOptions({
      onSuccess: () => {
        setRemoving(null)
        refresh()
      },
    }),
  )
  const test = useMutation(
    trpc.webhook.test.mutationOptions({
      onSuccess: refresh,
      onError: (error) => toast({ tone: 'bad', title: faultOf(error).message }),
    }),
  )
  const webhooks = query.data?.webhooks
  return (
    <Card
      title="Webhooks"
      description="Endpoints notified when an incident opens or resolves, signed as Standard Webhooks define it."
      className="mt-4"
      bodyClassName="p-0"
    >
      {query.error && !webhooks ? (
        <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} className="m-3" />
      ) : webhooks === undefined ? (
        <SkeletonRows rows={2} label="Loading webhooks" />
      ) : webhooks.length === 0 ? (
        <p className="px-4 py-3 text-sm text-ink-muted">
          No endpoints: incidents appear in the console only.
        </p>
      ) : (
        <Table label="Webhooks">
          <TableHead>
            <tr>
              <TableHeader>Address</TableHeader>
              <TableHeader>Newest message</TableHeader>
              <TableHeader number>Waiting</TableHeader>
              <TableHeader actions>
                <span className="sr-only">Actions</span>
              </TableHeader>
            </tr>
          </TableHead>
          <TableBody>
            {webhooks.map((webhook) => (
              <TableRow key={webhook.webhookId}>
                <TableCell className="min-w-48 max-w-md font-mono text-[13px] break-all">
                  {webhook.url}
                </TableCell>
                <TableCell>
                  <Newest last={webhook.last} />
                </TableCell>
                <TableCell number>{webhook.waiting}</TableCell>
                <TableCell actions>
                  <span className="inline-flex gap-2">
                    <Button
                      size="small"
                      aria-label={`Messages to ${webhook.url}`}
                      onClick={() => setShown(webhook)}
                    >
                      Messages
                    </Button>
                    <Button
                      size="small"
                      disabled={!mayChange}
                      aria-label={`Send a test to ${webhook.url}`}
                      onClick={() => test.mutate({ webhookId: webhook.webhookId })}
                    >
                      Test
                    </Button>
                    <Button
                      size="small"
                      variant="danger-quiet"
                      disabled={!mayChange}
                      aria-label={`Remove ${webhook.url}`}
                      onClick={() => setRemoving(webhook)}
                    >
                      Remove
                    </Button>
                  </span>
                </TableCell>
              </TableRow>
            ))}
          </TableBody>
        </Table>
      )}
      <div className="flex flex-col gap-3 border-t border-line px-4 py-3">
        {secret ? (
          <Alert
            tone="good"
            title="The secret its messages are signed with, shown this once"
            actions={<CopyButton text={secret} what="secret" showLabel />}
          >
            <code className="font-mono text-[13px] break-all text-ink">{secret}</code>
          </Alert>
        ) : null}
        {mayChange ? (
          <form
            className="flex flex-wrap items-end gap-2"
            onSubmit={(event) => {
              event.preventDefault()
              setSecret(null)
              add.mutate({ url: url.trim() })
            }}
          >
            <div className="min-w-60 flex-1">
              <Field label="Address">
                {(control) => (
                  <Input
                    {...control}
                    type="url"
                    required
                    placeholder="https://"
                    value={url}
                    autoComplete="off"
                    onChange={(event) => setUrl(event.target.value)}
                  />
                )}
              </Field>
            </div>
            <Button type="submit" busy={add.isPending} disabled={url.trim() === ''}>
              Add webhook
            </Button>
          </form>
        ) : (
          <p className="text-sm text-ink-muted">Admins and owners can add and remove webhooks.</p>
        )}
        {add.error ? <FaultAlert fault={faultOf(add.error)} /> : null}
      </div>
      <Dialog
        open={shown !== null}
        onOpenChange={(open) => {
          if (!open) setShown(null)
        }}
        title="Messages"
        description={<span className="break-all">{shown?.url}</span>}
      >
        {shown ? <Messages webhookId={shown.webhookId} /> : null}
      </Dialog>
      <ConfirmDialog
        open={removing !== null}
        onOpenChange={(open) => {
          if (open) return
          setRemoving(null)
          remove.reset()
        }}
        title="Remove this webhook?"
        confirmLabel="Remove"
        danger
        busy={remove.isPending}
        fault={remove.error ? faultOf(remove.error) : null}
        onConfirm={() => removing && remove.mutate({ webhookId: removing.webhookId })}
      >
        <p className="break-all">{removing?.url} receives nothing more; undelivered messages are dropped.</p>
      </ConfirmDialog>
    </Card>
  )
}

/** What was sent to an address, newest first, and how each message fared. */
function Messages({ webhookId }: { webhookId: string }) {
  const trpc = useTRPC()
  const query = useQuery(trpc.webhook.deliveries.queryOptions({ webhookId }, { refetchInterval: 3_000 }))
  const deliveries = query.data?.deliveries
  if (query.error && !deliveries)
    return <FaultAlert fault={faultOf(query.error)} onRetry={() => void query.refetch()} />
  if (!deliveries) return <SkeletonRows rows={2} label="Loading messages" />
  if (deliveries.length === 0) return <p className="pb-3 text-sm text-ink-muted">No deliveries yet.</p>
  return (
    <ul aria-label="Messages" className="pb-3">
      {deliveries.map((delivery) => (
        <li key={delivery.deliveryId} className="border-t border-line py-2 text-sm first:border-0">
          <Newest last={delivery} />
          {delivery.title ? <p className="break-words">{delivery.title}</p> : null}
          <p className="text-xs text-ink-muted">
            {delivery.attempts} {delivery.attempts === 1 ? 'attempt' : 'attempts'}
            {delivery.nextAttemptAt === null ? null : (
              <>
                , next at <Moment at={delivery.nextAttemptAt} />
              </>
            )}
          </p>
        </li>
      ))}
    </ul>
  )
}

function Newest({ last }: { last: Webhook['last'] }) {
  if (!last) return <span className="text-ink-muted">none yet</span>
  const tone = last.deliveredAt !== null ? 'good' : last.givenUpAt !== null ? 'bad' : 'warn'
  const words = last.deliveredAt !== null ? 'taken' : last.givenUpAt !== null ? 'given up' : 'not taken yet'
  return (
    <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
      <code className="font-mono text-[13px]">{last.event}</code>
      <Badge tone={tone}>{words}</Badge>
      <Age at={last.deliveredAt ?? last.createdAt} className="text-xs text-ink-muted" />
      {last.error ? <span className="text-xs break-words text-ink-muted">{last.error}</span> : null}
    </span>
  )
}
