import { listSettingRevisions, type SettingRevisionView } from '@floe/db'
import type { OperationId } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { memberOf, readScope } from './scope'
import { SettingRevisions, SettingRevisionsInput } from './setting.types'
import { changesBack } from './way-back'

/**
 * The revisions of settings that can be rolled back to, newest first: after each operation on any member, and as it was
 * found before the first one.
 */
export const revisions = viewerProcedure
  .input(SettingRevisionsInput)
  .output(SettingRevisions)
  .query(async ({ ctx, input: { scope, limit } }) => {
    const { pool } = ctx.ports.database
    const named = await readScope(pool, scope)
    const rows = await listSettingRevisions(pool, scope)
    return {
      members: named.members.map(memberOf),
      revisions: naming(rows)
        .slice(0, limit)
        .map((row) => ({
          revisionId: row.id,
          operationId: row.operationId as OperationId | null,
          at: row.at.getTime(),
          reason: row.reason,
          actor: row.actor,
          actorName: row.actorName,
          changed: changedBy(rows, row)
            .map((id) => named.members.find((m) => m.instanceId === id)?.name ?? id)
            .sort(),
          members: changesBack(rows, named, row.id).map((m) => ({
            ...memberOf(m),
            managed: m.managed,
            changes: m.changes,
          })),
        })),
    }
  })

/** Of the rows of an operation the newest names the revision: then all its members had been written. */
function naming(rows: readonly SettingRevisionView[]): SettingRevisionView[] {
  const first = new Map<string, SettingRevisionView>()
  for (const row of rows)
    if (row.operationId !== null && !first.has(row.operationId)) first.set(row.operationId, row)
  return rows.filter((row) =>
    row.operationId === null ? row === rows.at(-1) : first.get(row.operationId) === row,
  )
}

const changedBy = (rows: readonly SettingRevisionView[], { id, operationId }: SettingRevisionView) =>
  rows
    .filter((r) => (operationId === null ? r.id === id : r.operationId === operationId))
    .map((r) => r.instanceId)
