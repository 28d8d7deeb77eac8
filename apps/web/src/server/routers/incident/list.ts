import { countOpenIncidents, listIncidents } from '@floe/db'
import { fault } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { IncidentList, IncidentListInput } from './incident.types'
import { incidentSummary } from './incident.views'

/** What needs or needed a person, open incidents first, each newest first, page by page. */
export const list = viewerProcedure
  .input(IncidentListInput)
  .output(IncidentList)
  .query(async ({ ctx, input: { cursor, ...wanted } }) => {
    const { pool } = ctx.ports.database
    const after = cursor === undefined ? undefined : parseCursor(cursor)
    const [rows, open] = await Promise.all([
      listIncidents(pool, { ...wanted, after, limit: wanted.limit + 1 }),
      countOpenIncidents(pool),
    ])
    const page = rows.slice(0, wanted.limit)
    const last = page.at(-1)
    return {
      incidents: page.map(incidentSummary),
      nextCursor:
        rows.length > wanted.limit && last
          ? `${last.closedAt === null ? 'open' : 'closed'}_${last.openedAt.getTime()}_${last.incidentId}`
          : null,
      open,
      now: Date.now(),
    }
  })

function parseCursor(cursor: string) {
  const [, state, at, incidentId] =
    /^(open|closed)_(\d{1,15})_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(cursor) ?? []
  if (!at || !incidentId) throw fault('incident.bad_cursor', 'cursor is not one of incident.list')
  return { open: state === 'open', openedAt: new Date(Number(at)), incidentId }
}
