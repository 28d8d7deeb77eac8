import { listSettingChanges } from '@floe/db'
import type { InstanceId, OperationId } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { memberOf, readScope } from './scope'
import { SettingHistory, SettingHistoryInput } from './setting.types'

/** Who changed which setting on which member when and why, newest first, as that member confirmed it. */
export const history = viewerProcedure
  .input(SettingHistoryInput)
  .output(SettingHistory)
  .query(async ({ ctx, input: { scope, ...which } }) => {
    const { pool } = ctx.ports.database
    const { members } = await readScope(pool, scope)
    const rows = await listSettingChanges(pool, scope, which)
    return {
      members: members.map(memberOf),
      changes: rows.map(({ id: _, at, operationId, instanceId, ...row }) => ({
        ...row,
        instanceId: instanceId as InstanceId,
        operationId: operationId as OperationId,
        at: at.getTime(),
      })),
    }
  })
