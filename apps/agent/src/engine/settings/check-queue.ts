import type { SettingCheck } from '@floe/agent-contract'
import { fault, type SettingChange } from '@floe/domain'
import type { Instance } from '../instance'
import { type Asking, checkOfInstance, withInstance } from './check-instance'
import { Turns } from './turns'

/** A check starts a throw-away engine; who would wait for more than these has given up by the time of its turn. */
const WAITING_MAX = 4

/** Checks of settings of all instances, one after the other. */
export const settingChecks = new Turns(WAITING_MAX, () =>
  fault('setting.too_many_checks', 'too many settings are being checked', {
    detail: `One check runs and ${WAITING_MAX} wait on this host.`,
    hint: 'Try again in some seconds.',
  }),
)

/** What changes of an instance would do, once it is their turn; the instance is looked up only then. */
export const tryChanges = (
  find: () => Instance,
  changes: readonly SettingChange[],
  asking: Asking,
): Promise<SettingCheck> =>
  settingChecks.take(async () => {
    const instance = find()
    const results = await withInstance(instance, (client) =>
      checkOfInstance(instance, client, changes, asking),
    )
    return { results }
  }, asking.signal)
