import { showInstance } from '@floe/db'
import { FaultError, fault, ofWholeCluster } from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { checkSettings } from '../../setting-checks'
import { SettingCheck, SettingCheckInput, SettingCheckResult } from './check.types'

/**
 * What changes would do, said by the instance's own binary, which is started for it: nothing of the instance changes, yet it
 * is no question but a task. What a member of a cluster must not have by itself is refused here as it is when it is asked
 * for.
 */
export const check = operatorProcedure
  .input(SettingCheckInput)
  .output(SettingCheck)
  .mutation(async ({ ctx, input: { instanceId, changes } }) => {
    const instance = await showInstance(ctx.ports.database.pool, instanceId)
    if (!instance || instance.deletedAt)
      throw fault('instance.not_found', `instance "${instanceId}" does not exist`)
    const [answer] = await checkSettings(
      ctx,
      [{ instanceId, hostId: instance.host.hostId, changes, acrossCluster: false }],
      { action: 'setting.check', objectKind: 'instance', objectId: instanceId },
    )
    if (answer?.fault) throw new FaultError(answer.fault)
    return {
      results: SettingCheckResult.array()
        .parse(answer?.results)
        .map((r) => ({ ...r, fault: ofWholeCluster([r.name], instance.cluster) ?? r.fault })),
    }
  })
