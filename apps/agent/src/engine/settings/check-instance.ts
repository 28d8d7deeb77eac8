import { type CheckedSetting, FaultError, type SettingChange } from '@floe/domain'
import type pg from 'pg'
import type { AgentInstallation } from '../../installation'
import type { Instance } from '../instance'
import { checkSettings } from './check'
import { trialPlace } from './trial-place'

/** For whom an instance's changes are checked. */
export type Asking = {
  installation: AgentInstallation
  /** Aborted when nobody waits for the answer any more. */
  signal: AbortSignal | undefined
  /** The primary takes the changes first: what its WAL asks of a standby now is not held against them. */
  acrossCluster?: boolean | undefined
}

/** What changes would do to an instance, each with its own refusal. `client` is null where it does not run. */
export const checkOfInstance = (
  instance: Instance,
  client: pg.Client | null,
  changes: readonly SettingChange[],
  { installation, signal, acrossCluster }: Asking,
): Promise<CheckedSetting[]> =>
  checkSettings(
    {
      prefix: instance.enginePrefix,
      layout: instance.layout,
      port: instance.registered.port,
      user: instance.user,
      trial: trialPlace(installation, instance.instanceId),
      client,
      signal,
      acrossCluster,
    },
    changes,
  )

/** The same; throws the first refusal. */
export async function requireAccepted(
  ...asked: Parameters<typeof checkOfInstance>
): Promise<CheckedSetting[]> {
  const checked = await checkOfInstance(...asked)
  const refused = checked.find((c) => c.fault)?.fault
  if (refused) throw new FaultError(refused)
  return checked
}

/** Runs something with a connection to the instance where it runs, else without. */
export const withInstance = <T>(
  instance: Instance,
  run: (client: pg.Client | null) => Promise<T>,
  statementMs?: number,
): Promise<T> => (instance.postmaster ? instance.connect(run, statementMs) : run(null))
