import { listAuditEvents } from '@floe/db'
import { fault } from '@floe/domain'
import { adminProcedure } from '../../procedures'
import { AuditList, AuditListInput } from './audit.types'

/** Who asked for what, and whether it was allowed: newest first, page by page. */
export const list = adminProcedure
  .input(AuditListInput)
  .output(AuditList)
  .query(async ({ ctx, input: { cursor, ...wanted } }) => {
    const rows = await listAuditEvents(ctx.ports.database.pool, {
      ...wanted,
      before: cursor === undefined ? undefined : parseCursor(cursor),
      limit: wanted.limit + 1,
    })
    const page = rows.slice(0, wanted.limit)
    const last = page.at(-1)
    return {
      events: page.map((row) => ({
        ...row,
        at: row.at.getTime(),
        objectName: typeof row.detail?.name === 'string' ? row.detail.name : null,
      })),
      nextCursor: rows.length > wanted.limit && last ? `${last.at.getTime()}_${last.eventId}` : null,
    }
  })

function parseCursor(cursor: string) {
  const [, at, eventId] = /^(\d{1,15})_(\d{1,18})$/.exec(cursor) ?? []
  if (!at || !eventId) throw fault('audit.bad_cursor', 'cursor is not one of audit.list')
  return { at: new Date(Number(at)), eventId }
}
