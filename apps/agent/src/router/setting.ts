import type { SettingList } from '@floe/agent-contract'
import { fault } from '@floe/domain'
import type { z } from 'zod'
import type { Instance } from '../engine/instance'
import { readSettings } from '../engine/settings/catalogue'

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
