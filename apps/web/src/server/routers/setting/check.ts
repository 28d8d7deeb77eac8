import { showInstance } from '@floe/db'
import { ofWholeCluster } from '@floe/domain'
import { operatorProcedure } from '../../procedures'
import { SettingCheck, SettingCheckInput } from './check.types'

/**
 * What changes would do, said by the instance's own binary; a probe, changes nothing. Operators only: it starts a throw-away
 * engine. What a member of a cluster must not have by itself is refused here as it is when it is asked for.
 */
export const check = operatorProcedure
  .input(SettingCheckInput)
  .output(SettingCheck)
  .query(async ({ ctx, input }) => {
    const instance = await showInstance(ctx.ports.database.pool, input.instanceId)
    const { results } = await ctx.ports.agents.probe(input.instanceId, (trpc) =>
      trpc.setting.check.query(input),
    )
    return {
      results: results.map((r) => ({
        ...r,
        fault: (instance && ofWholeCluster([r.name], instance.cluster)) ?? r.fault,
      })),
    }
  })
