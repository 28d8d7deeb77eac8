import { fault } from '@floe/domain'
import type { Command } from 'commander'
import { moment, printResult, table } from '../output'
import { openConsole } from './find-instance'
import { verb } from './verb'

type Verb = { json?: boolean }

function webhookId(text: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return text
  throw fault('usage.webhook_id', `"${text}" is not the id of a webhook`, {
    hint: 'Run "./floe webhook list" for the ids.',
  })
}

export function addWebhook(program: Command): void {
  const webhook = program
    .command('webhook')
    .summary('notify other programs of incidents')
    .description('Webhooks: endpoints notified of every incident, signed as Standard Webhooks define it.')

  verb(webhook, 'list', 'list the webhooks and the outcome of their latest message').action(
    async ({ json }: Verb) => {
      const { webhooks } = await openConsole().trpc.webhook.list.query()
      printResult(json, webhooks, () =>
        webhooks.length === 0
          ? 'There are no webhooks.'
          : table(
              ['address', 'since', 'by', 'newest message', 'waiting', 'id'],
              webhooks.map((w) => [
                w.url,
                moment(w.createdAt),
                w.actorName,
                w.last === null
                  ? 'none yet'
                  : w.last.deliveredAt !== null
                    ? `${w.last.event}, taken ${moment(w.last.deliveredAt)}`
                    : `${w.last.event}, ${w.last.givenUpAt === null ? 'not taken yet' : 'given up'}${w.last.error ? `: ${w.last.error}` : ''}`,
                w.waiting,
                w.webhookId,
              ]),
            ),
      )
    },
  )
  verb(webhook, 'show <id>', 'show the latest messages of a webhook and their outcomes').action(
    async (id: string, { json }: Verb) => {
      const { deliveries } = await openConsole().trpc.webhook.deliveries.query({ webhookId: webhookId(id) })
      printResult(json, deliveries, () =>
        deliveries.length === 0
          ? 'No message was sent yet.'
          : table(
              ['queued', 'message', 'state', 'attempts', 'what', 'why not'],
              deliveries.map((d) => [
                moment(d.createdAt),
                d.event,
                d.deliveredAt !== null
                  ? `taken ${moment(d.deliveredAt)}`
                  : d.givenUpAt !== null
                    ? `given up ${moment(d.givenUpAt)}`
                    : `waits until ${moment(d.nextAttemptAt)}`,
                d.attempts,
                d.title ?? ' ',
                d.error ?? ' ',
              ]),
            ),
      )
    },
  )
  verb(
    webhook,
    'add <url>',
    'add an endpoint that is notified of every incident',
    'Adds an endpoint that is notified of every incident from now on. The secret that signs its messages is shown only once.',
  ).action(async (url: string, { json }: Verb) => {
    const added = await openConsole().trpc.webhook.add.mutate({ url })
    printResult(json, added, () => `webhook  ${added.webhookId}\nsecret   ${added.secret}  (shown this once)`)
  })
  verb(webhook, 'test <id>', 'send a test message').action(async (id: string, { json }: Verb) => {
    const asked = await openConsole().trpc.webhook.test.mutate({ webhookId: webhookId(id) })
    printResult(json, asked, () => 'Queued. "./floe webhook list" shows the outcome.')
  })
  verb(webhook, 'remove <id>', 'remove a webhook').action(async (id: string, { json }: Verb) => {
    const removed = await openConsole().trpc.webhook.remove.mutate({ webhookId: webhookId(id) })
    printResult(json, removed, () => `Webhook ${removed.webhookId} was removed.`)
  })
}
