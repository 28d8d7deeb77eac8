import { settingImpact, settingWords } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { SettingList, SettingListInput } from './list.types'

/** The settings of the instance's own binary with values and sources; a probe, within 3 s. */
export const list = viewerProcedure
  .input(SettingListInput)
  .output(SettingList)
  .query(async ({ ctx, input: { instanceId, names, search } }) => {
    const { settings, observedAt } = await ctx.ports.agents.probe(instanceId, (trpc) =>
      trpc.setting.list.query({ instanceId, names }),
    )
    const wanted = search?.trim().toLowerCase() ?? ''
    const views = settings.map((setting) => {
      const words = settingWords[setting.name]
      return {
        ...setting,
        impact: settingImpact(setting.context),
        title: words?.title ?? null,
        meaning: words?.meaning ?? null,
        warning: words?.warning ?? null,
      }
    })
    return {
      settings: views.filter((s) =>
        [s.name, s.title, s.description, s.category].some((text) => text?.toLowerCase().includes(wanted)),
      ),
      observedAt,
    }
  })
