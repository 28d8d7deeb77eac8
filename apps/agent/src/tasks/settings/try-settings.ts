import { fault } from '@floe/domain'
import { checkSettings } from '../../engine/settings/check'
import { trialPlace } from '../../engine/settings/trial-place'
import { Turns } from '../../engine/settings/turns'
import { makeOuterDirectory } from '../../host/owned-files'
import { dryRunSettings } from '../../router/setting'
import { initialSettings } from '../instance/create-instance'
import type { TaskBody } from '../runner/task'

/** A check starts a throw-away engine; who would wait for more than these has given up by the time of its turn. */
const WAITING_MAX = 4

/** Checks of settings of all instances, one after the other. */
export const settingChecks = new Turns(WAITING_MAX, () =>
  fault('setting.too_many_checks', 'too many settings are being checked', {
    detail: `One check runs and ${WAITING_MAX} wait on this host.`,
    hint: 'Try again in some seconds.',
  }),
)

/** What changes of an instance would do, each with its own refusal. */
export const trySettings: TaskBody<'try-settings'> = (task, context) =>
  settingChecks.take(
    () =>
      dryRunSettings(context.instances.get(task.instanceId), task.changes, {
        trial: trialPlace(context.installation, task.instanceId),
        signal: context.signal,
        acrossCluster: task.acrossCluster,
      }),
    context.signal,
  )

/**
 * The same for an instance that is to be made: by the engine it would get, as a user who has no instance. That user is the
 * host's one for all such checks and is never released: uids are not given out again, and one a check would use them up.
 * Of a check nothing stays but the throw-away data directory, which the next one takes.
 */
export const tryNewSettings: TaskBody<'try-new-settings'> = (task, context) =>
  settingChecks.take(async () => {
    const { installation, instances, users } = context
    // one place for all of them: what they try are settings only, and no program of theirs is run
    const trial = trialPlace(installation, '.new-instance')
    const user = users ? await users.claim(installation.hostId) : instances.sharedUser
    makeOuterDirectory(trial.outer, user)
    const results = await checkSettings(
      {
        prefix: installation.enginePrefix,
        layout: null,
        managed: new Map(Object.entries(initialSettings(installation))),
        user,
        trial,
        client: null,
        signal: context.signal,
      },
      task.changes,
    )
    return { results }
  }, context.signal)
