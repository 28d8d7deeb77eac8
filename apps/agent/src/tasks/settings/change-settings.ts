import type { TaskResult } from '@floe/agent-contract'
import type { ConfirmedSetting, Setting, SettingChange } from '@floe/domain'
import type pg from 'pg'
import { z } from 'zod'
import type { Instance } from '../../engine/instance'
import { requireAccepted, withInstance } from '../../engine/settings/check-instance'
import { putBack, readBack, takeIntoForce } from '../../engine/settings/into-force'
import { applyChanges, managedRecord, writeManagedSettings } from '../../engine/settings/managed-file'
import { pendingRestart } from '../../engine/settings/pending-restart'
import { proveGood } from '../instance/make-ready'
import type { TaskBody, TaskContext } from '../runner/task'

/**
 * Checks the changes by the instance's own binary, writes the managed file, reloads and reads back over a new connection.
 * Nothing is changed when one of them is refused; when the engine does not take one after all, or lets nobody in any
 * more, the former file is restored. It is noted before it is replaced, so that a run after a kill finds it.
 */
export const changeSettings: TaskBody<'change-settings'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await instance.look()
  return withInstance(
    instance,
    (client) => instance.files.whileChanging(() => change(instance, client, task.changes, context)),
    30_000,
  )
}

/** What held before the task's first run changed anything. */
const Former = z.object({
  managed: z.record(z.string(), z.string()),
  shown: z.record(z.string(), z.string().nullable()),
})
type Former = z.infer<typeof Former>

async function change(
  instance: Instance,
  client: pg.Client | null,
  changes: readonly SettingChange[],
  context: TaskContext,
): Promise<TaskResult<'change-settings'>> {
  const { managedFile } = instance.layout
  const noted = Former.safeParse(context.note.read())
  let former: Former | null = noted.success ? noted.data : null
  try {
    const checked = await requireAccepted(instance, client, changes, context)
    context.signal.throwIfAborted()
    if (!former) {
      const first = {
        managed: managedRecord(managedFile),
        shown: Object.fromEntries(checked.map((c) => [c.name, c.oldValue])),
      }
      context.note.write(first)
      former = first
      const byHand = instance.files.drift.filter((d) => d.file === 'floe.conf').map((d) => d.name)
      if (byHand.length > 0)
        context.log(`taking over what was edited in floe.conf by hand: ${byHand.join(', ')}`)
    }
    const before = new Map(Object.entries(former.managed))
    writeManagedSettings(managedFile, applyChanges(before, changes), instance.user)
    context.log(`wrote ${changes.length === 1 ? '1 setting' : `${changes.length} settings`}`)
    const after =
      client && (await takeIntoForce(instance, client, (fresh) => readBack(fresh, instance, changes)))
    if (!after) context.log('the instance is stopped and takes them when it starts')
    const confirmed = checked.map((c) => confirm(c, former as Former, after, context))
    // only what holds now is known to start again; what waits for a restart is proven by that
    if (client && (await pendingRestart(client)).length === 0) proveGood(instance, context)
    return { confirmed, managedBefore: former.managed, managed: managedRecord(managedFile) }
  } catch (error) {
    const { managed } = former ?? {}
    if (managed) putBack(instance, () => writeManaged(instance, managed), context.log)
    throw error
  }
}

function confirm(
  checked: { name: string; newValue: string | null },
  former: Former,
  after: Map<string, Setting> | null,
  context: TaskContext,
): ConfirmedSetting {
  const { name } = checked
  const oldValue = former.shown[name] ?? null
  if (!after) return { name, oldValue, newValue: checked.newValue, pendingRestart: false }
  const setting = after.get(name.toLowerCase())
  const pendingRestart = setting?.pendingRestart ?? false
  const remark = pendingRestart
    ? ' (the new value waits for a restart)'
    : /database|user/.test(setting?.source ?? '')
      ? ' (a value of the role or database holds in this session)'
      : ''
  context.log(
    setting?.shown === oldValue && !pendingRestart
      ? `${name} is ${oldValue} already${remark}`
      : `${name}: ${oldValue} → ${setting?.shown}${remark}`,
  )
  return { name, oldValue, newValue: setting?.shown ?? null, pendingRestart }
}

/** The managed file with these values, unless it has them; answers whether it was written. */
function writeManaged(instance: Instance, managed: Former['managed']): boolean {
  const { managedFile } = instance.layout
  const now = Object.entries(managedRecord(managedFile))
  if (now.length === Object.keys(managed).length && now.every(([name, value]) => managed[name] === value))
    return false
  writeManagedSettings(managedFile, new Map(Object.entries(managed)), instance.user)
  return true
}
