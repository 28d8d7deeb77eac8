import { FaultError, HostId } from '@floe/domain'
import { chooseHost } from '@floe/operations/submit'
import { operatorProcedure } from '../../procedures'
import { checkSettings } from '../../setting-checks'
import { SettingCheckResult } from '../setting/setting.types'
import { InstanceCheck, InstanceCheckInput } from './instance.types'

/**
 * What the settings of an instance that is to be created would do, said by the engine that it would get on its host: the
 * same rules as instance.create and setting.check. Nothing is made.
 */
export const check = operatorProcedure
  .input(InstanceCheckInput)
  .output(InstanceCheck)
  .mutation(async ({ ctx, input }) => {
    const { pool } = ctx.ports.database
    const hostId = HostId.parse(await chooseHost(pool, input.hostId))
    const changes = Object.entries(input.settings).map(([name, value]) => ({ name, value }))
    const [answer] = await checkSettings(ctx, [{ instanceId: null, hostId, changes, acrossCluster: false }], {
      action: 'instance.check',
      objectKind: 'host',
      objectId: hostId,
    })
    if (answer?.fault) throw new FaultError(answer.fault)
    return { hostId, results: SettingCheckResult.array().parse(answer?.results) }
  })
