import type { SettingCheck, SettingList } from '@floe/agent-contract'
import { fault, type SettingChange } from '@floe/domain'
import type { z } from 'zod'
import type { Instance } from '../engine/instance'
import { readSettings } from '../engine/settings/catalogue'
import { checkSettings } from '../engine/settings/check'
import type { TrialPlace } from '../engine/settings/trial'

/** The catalogue with values, from the running instance. */
export async function listSettings(
  instance: Instance,
  names?: string[],
): Promise<z.output<typeof SettingList>> {
  if (!instance.postmaster)
    throw fault('instance.not_running', 'the instance is not running', {
      detail: 'Its settings are read from the running engine.',
      hint: 'Start it to see them. They can be changed while it is stopped.',
    })
  const settings = await instance.connect((client) => readSettings(client, instance.layout, names))
  return { settings: [...settings.values()], observedAt: Date.now() }
}

/** A dry run of changes; ends when the caller has given up. */
export async function dryRunSettings(
  instance: Instance,
  changes: SettingChange[],
  o: {
    trial: TrialPlace
    signal: AbortSignal | undefined
    acrossCluster?: boolean | undefined
  },
): Promise<SettingCheck> {
  const target = { prefix: instance.enginePrefix, layout: instance.layout, user: instance.user, ...o }
  const results = instance.postmaster
    ? await instance.connect((client) => checkSettings({ ...target, client }, changes))
    : await checkSettings({ ...target, client: null }, changes)
  return { results }
}
