import { listWebhooks } from '@floe/db'
import { viewerProcedure } from '../../procedures'
import { seesWhole } from './sees-whole'
import { WebhookList } from './webhook.types'

/** Who is notified of incidents, each with how its newest message fared. */
export const list = viewerProcedure.output(WebhookList).query(async ({ ctx }) => {
  const whole = seesWhole(ctx.actor)
  const rows = await listWebhooks(ctx.ports.database.pool)
  const moment = (text: string | null) => (text === null ? null : Date.parse(text))
  return {
    webhooks: rows.map((row) => ({
      ...row,
      url: whole ? row.url : new URL(row.url).origin,
      createdAt: row.createdAt.getTime(),
      last: row.last && {
        ...row.last,
        error: whole ? row.last.error : row.last.error && 'failed',
        createdAt: Date.parse(row.last.createdAt),
        deliveredAt: moment(row.last.deliveredAt),
        givenUpAt: moment(row.last.givenUpAt),
      },
    })),
    now: Date.now(),
  }
})
