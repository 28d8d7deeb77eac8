import { listSettingRevisions } from '@floe/db'
import type { OperationId, SettingChange } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { SettingRevisions, SettingRevisionsInput } from './revisions.types'

/** The revisions of an instance's settings that can be gone back to, newest first. */
export const revisions = viewerProcedure
  .input(SettingRevisionsInput)
  .output(SettingRevisions)
  .query(async ({ ctx, input }) => {
    const rows = await listSettingRevisions(ctx.ports.database.pool, input)
    const holding = rows[0]?.managed ?? {}
    return {
      revisions: rows.map(({ id, at, operationId, ...row }) => ({
        ...row,
        revisionId: id,
        operationId: operationId as OperationId | null,
        at: at.getTime(),
        changes: changesTo(holding, row.managed),
      })),
    }
  })

/** Why settings were changed, where nobody said it: with the moment of the revision they went back to. */
export const rolledBackTo = (at: Date) =>
  `rolled back to the revision of ${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`

/** The changes that lead from one revision of the managed file to another, by name. */
export function changesTo(from: Record<string, string>, to: Record<string, string>): SettingChange[] {
  return [...new Set([...Object.keys(from), ...Object.keys(to)])]
    .filter((name) => from[name] !== to[name])
    .sort()
    .map((name) => ({ name, value: to[name] ?? null }))
}
