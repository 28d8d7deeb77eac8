import { fault } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import { readControlFile } from '../../engine/directory/control-file'
import type { Instance } from '../../engine/instance'
import { readManagedSettings } from '../../engine/settings/managed-file'
import pendingRestartSql from '../../engine/sql/pending-restart.sql'
import type { TaskBody } from '../runner/task'
import { check, readBack } from './change-settings'

/** A standby that is further behind than this has to be looked at by a person. */
const REPLAY_BOUND_MS = 600_000
/** A restartpoint writes all that is dirty. */
const RESTARTPOINT_BOUND_MS = 600_000

async function requireRunning(instance: Instance): Promise<void> {
  await instance.look()
  if (!instance.postmaster)
    throw fault('instance.not_running', `instance "${instance.registered.name}" is not running`, {
      hint: 'Start it first.',
    })
}

const managedOf = (instance: Instance) => Object.fromEntries(readManagedSettings(instance.layout.managedFile))

/** What changes would do on this member of a cluster; nothing is changed. */
export const checkSettings: TaskBody<'check-settings'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  return instance.connect(async (client) => {
    const checked = await check(instance, client, task.changes, context, true)
    const pending = await client.query<{ name: string }>(pendingRestartSql)
    return {
      checked: checked.map(({ name, impact, oldValue, oldNumber, newNumber }) => ({
        name,
        impact,
        oldValue,
        oldNumber,
        newNumber,
      })),
      managed: managedOf(instance),
      pendingRestart: pending.rows.map((r) => r.name),
    }
  }, 30_000)
}

/**
 * Waits for a standby's control file, which keeps what the primary's WAL asks for, and then moves the point from which
 * a crash would begin to replay past the primary's restart: WAL from before it asks for the former values.
 */
export const awaitSettings: TaskBody<'await-settings'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  const read = async () =>
    (await readControlFile(instance.enginePrefix, instance.layout.dataDirectory, instance.user))?.asked
  const lacking = (asked: Record<string, number>) =>
    Object.entries(task.atMost).filter(([name, value]) => (asked[name] ?? 0) > value)
  const asked = await waitFor(
    async () => {
      const seen = await read()
      if (!seen) return null
      const [first] = lacking(seen)
      if (!first) return seen
      context.say(
        `replaying: the primary’s WAL still asks for ${first[0]} = ${seen[first[0] as keyof typeof seen]}`,
      )
      return null
    },
    { boundMs: REPLAY_BOUND_MS, everyMs: 250, signal: context.signal },
  )
  if (asked === null)
    throw fault('standby.behind', 'the standby has not replayed the primary’s change within 10 minutes', {
      detail: 'With smaller values than its primary it would stop replaying, so they were not written.',
      hint: 'Check that it streams and that replay is not paused.',
    })
  context.signal.throwIfAborted()
  await instance.connect((client) => client.query('checkpoint'), RESTARTPOINT_BOUND_MS)
  context.log(`the primary’s WAL asks for no more than ${words(task.atMost)}`)
  return { asked }
}

const words = (values: Record<string, number>) =>
  Object.entries(values)
    .map(([name, value]) => `${name} = ${value}`)
    .join(', ')

/** What a new connection says of settings that were changed: pg_settings and the lines they come from. */
export const confirmSettings: TaskBody<'confirm-settings'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await requireRunning(instance)
  const settings = await instance.connectPlainly((client) => readBack(client, instance, task.changes))
  const confirmed = task.changes.map((change) => {
    const setting = settings.get(change.name.toLowerCase())
    if (!setting)
      throw fault('setting.unknown', `setting "${change.name}" does not exist`, {
        detail: 'The instance’s own engine does not know it.',
      })
    if (setting.pendingRestart && !task.pendingAllowed)
      throw fault('setting.not_applied', `setting "${setting.name}" still waits for a restart`, {
        detail: `It is ${setting.shown}.`,
      })
    const newValue = setting.pendingRestart ? change.value : setting.shown
    context.log(
      `${setting.name} is ${setting.shown}${setting.pendingRestart ? '; the new value waits for a restart' : ''}`,
    )
    return { name: setting.name, newValue, pendingRestart: setting.pendingRestart }
  })
  return { confirmed, managed: managedOf(instance) }
}
