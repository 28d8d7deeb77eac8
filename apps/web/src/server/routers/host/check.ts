import {
  askHostCheck,
  hostNotFound,
  insertAuditEvent,
  inTransaction,
  readHostCheck,
  showHost,
  showHostCheck,
} from '@floe/db'
import { FaultError, hostRevoked } from '@floe/domain'
import { awaitCheck } from '../../await-check'
import { operatorProcedure } from '../../procedures'
import { HostCheckInput, HostCheckShown } from './host.types'
import { hostCheckShown } from './host.views'

/**
 * Has the machine of a host checked by its agent, and waits for what that reports: a task, though nothing is changed. While
 * one is open it is that one. Throws `host.not_found`, `host.revoked`, or why the check returned no result; what an earlier one
 * reported is kept.
 */
export const check = operatorProcedure
  .input(HostCheckInput)
  .output(HostCheckShown)
  .mutation(async ({ ctx, input: { hostId } }) => {
    const { pool } = ctx.ports.database
    const host = await showHost(pool, hostId)
    if (!host) throw hostNotFound(hostId)
    if (host.revokedAt !== null) throw hostRevoked(host.name)
    const checkId = await inTransaction(pool, async (tx) => {
      const asked = await askHostCheck(tx, { hostId, actor: ctx.actor })
      if (asked.created)
        await insertAuditEvent(tx, {
          actor: ctx.actor,
          action: 'host.check',
          outcome: 'allowed',
          objectKind: 'host',
          objectId: hostId,
          detail: { name: host.name, checkId: asked.checkId },
          ipAddress: ctx.ipAddress,
        })
      return asked.checkId
    })
    const { fault } = await awaitCheck(ctx, checkId, {
      of: `host "${host.name}"`,
      code: 'host',
      detail: 'a file system of the host may not answer',
      read: async () => {
        const row = await readHostCheck(pool, checkId)
        return { taken: row?.taken ?? false, answer: row?.ended ?? null }
      },
    })
    if (fault) throw new FaultError(fault)
    return hostCheckShown(await showHostCheck(pool, hostId))
  })
