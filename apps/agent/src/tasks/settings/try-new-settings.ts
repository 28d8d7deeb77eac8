import { checkSettings } from '../../engine/settings/check'
import { settingChecks } from '../../engine/settings/check-queue'
import { initialSettings } from '../../engine/settings/initial'
import { trialPlace } from '../../engine/settings/trial-place'
import { makeOuterDirectory } from '../../host/owned-files'
import type { TaskBody } from '../runner/task'

/**
 * What settings of an instance that is to be made would do: by its engine, as a user who has no instance. That user is the
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
        port: null,
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
