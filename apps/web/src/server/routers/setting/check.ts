import { operatorProcedure } from '../../procedures'
import { SettingCheck, SettingCheckInput } from './check.types'

/** What changes would do, said by the instance's own binary; a probe, changes nothing. Operators only: it starts a throw-away engine. */
export const check = operatorProcedure
  .input(SettingCheckInput)
  .output(SettingCheck)
  .query(({ ctx, input }) =>
    ctx.ports.agents.probe(input.instanceId, (trpc) => trpc.setting.check.query(input)),
  )
