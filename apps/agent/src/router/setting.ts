import type { AgentHandlers } from '@floe/agent-contract'
import { fault } from '@floe/domain'
import type { Instances } from '../engine/instances'
import { readSettings } from '../engine/settings/catalogue'
import { tryChanges } from '../engine/settings/check-queue'
import type { AgentInstallation } from '../installation'

export const settingHandlers = (
  instances: Instances,
  installation: AgentInstallation,
): Pick<AgentHandlers, 'listSettings' | 'checkSettings'> => ({
  /** The catalogue with values, from the running instance. */
  async listSettings({ instanceId, names }) {
    const instance = instances.get(instanceId)
    if (!instance.postmaster)
      throw fault('instance.not_running', 'the instance is not running', {
        detail: 'Its settings are read from the running engine.',
        hint: 'Start it to see them. They can be changed while it is stopped.',
      })
    const settings = await instance.connect((client) => readSettings(client, instance.layout, names))
    return { settings: [...settings.values()], observedAt: Date.now() }
  },
  checkSettings: ({ instanceId, changes, acrossCluster }, signal) =>
    tryChanges(() => instances.get(instanceId), changes, { installation, signal, acrossCluster }),
})
