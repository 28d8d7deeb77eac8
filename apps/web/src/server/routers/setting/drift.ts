import { type InstanceView, showInstance } from '@floe/db'
import { viewerProcedure } from '../../procedures'
import { memberOf, readScope } from './scope'
import { SettingDrift, SettingDriftInput } from './setting.types'

/** Configuration drift of each member, as its agent last reported; at most some seconds after the change. */
export const drift = viewerProcedure
  .input(SettingDriftInput)
  .output(SettingDrift)
  .query(async ({ ctx, input: { scope } }) => {
    const { pool } = ctx.ports.database
    const { members } = await readScope(pool, scope)
    const seen = await Promise.all(
      members.map(async (m) => ({ ...m, ...reportedOf(await showInstance(pool, m.instanceId)) })),
    )
    return {
      members: seen.map((m) => ({ ...memberOf(m), observedAt: m.observedAt })),
      drift: seen.flatMap(({ instanceId, name, drift }) =>
        drift.map((entry) => ({ ...entry, instanceId, instanceName: name })),
      ),
    }
  })

const reportedOf = (instance: InstanceView | undefined) => ({
  drift: instance?.settingDrift ?? [],
  observedAt: instance?.observedAt?.getTime() ?? null,
})
