import { viewerProcedure } from '../../procedures'
import { SettingCheck, SettingCheckInput } from './check.types'

/** What changes would do, said by the instance's own binary; a probe, changes nothing. */
export const check = viewerProcedure
  .input(SettingCheckInput)
  .output(SettingCheck)
  .query(({ ctx, input }) =>
    ctx.ports.agents.probe(input.instanceId, (trpc) => trpc.setting.check.query(input)),
  )
