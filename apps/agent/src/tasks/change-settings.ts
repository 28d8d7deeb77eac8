import type { TaskResult } from '@floe/agent-contract'
import { FaultError, fault, type Setting, type SettingChange, toFault } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type pg from 'pg'
import { z } from 'zod'
import { type CheckTarget, checkSettings } from '../engine/check-settings'
import { applyChanges, readManagedSettings, writeManagedSettings } from '../engine/configuration-file'
import { sqlState } from '../engine/connection'
import type { Instance } from '../engine/instance'
import { readSettings } from '../engine/settings'
import fileSettingsSql from '../engine/sql/file-settings.sql'
import pendingRestartSql from '../engine/sql/pending-restart.sql'
import { trialPlace } from '../engine/trial-place'
import { reload } from './reload-instance'
import { proveGood } from './start-instance'
import type { TaskBody, TaskContext } from './task'

type Confirmed = TaskResult<'change-settings'>['confirmed']

/**
 * Checks the changes by the instance's own binary, writes the managed file, reloads and reads back over a new connection.
 * Nothing is changed when one of them is refused; when the engine does not take one after all, or lets nobody in any
 * more, the former file is put back. It is noted before it is replaced, so that a run after a kill finds it.
 */
export const changeSettings: TaskBody<'change-settings'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await instance.look()
  if (instance.postmaster)
    return instance.connect((client) => change(instance, client, task.changes, context), 30_000)
  return change(instance, null, task.changes, context)
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
  instance.changingSettings = true
  try {
    const checked = await check(instance, client, changes, context)
    context.signal.throwIfAborted()
    if (!former) {
      const first = {
        managed: Object.fromEntries(readManagedSettings(managedFile)),
        shown: Object.fromEntries(checked.map((c) => [c.name, c.oldValue])),
      }
      context.note.write(first)
      former = first
      const byHand = instance.drift.filter((d) => d.file === 'floe.conf').map((d) => d.name)
      if (byHand.length > 0)
        context.log(`taking over what was edited in floe.conf by hand: ${byHand.join(', ')}`)
    }
    const before = new Map(Object.entries(former.managed))
    writeManagedSettings(managedFile, applyChanges(before, changes), instance.user)
    context.log(`wrote ${changes.length === 1 ? '1 setting' : `${changes.length} settings`}`)
    const after = client && (await takeIntoForce(instance, client, changes))
    if (!after) context.log('the instance is stopped and takes them when it starts')
    const confirmed = checked.map((c) => confirm(c, former as Former, after, context))
    // only what holds now is known to start again; what waits for a restart is proven by that
    if (client && (await nothingPends(client))) proveGood(instance, context)
    const managed = Object.fromEntries(readManagedSettings(managedFile))
    return { confirmed, managedBefore: former.managed, managed }
  } catch (error) {
    if (former) putBack(instance, former, context)
    throw error
  } finally {
    instance.changingSettings = false
    instance.lookAtFiles(0)
  }
}

async function nothingPends(client: pg.Client): Promise<boolean> {
  return (await client.query(pendingRestartSql)).rows.length === 0
}

function confirm(
  checked: { name: string; newValue: string | null },
  former: Former,
  after: Map<string, Setting> | null,
  context: TaskContext,
): Confirmed[number] {
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

/** The file as it was, and the engine told; what cannot be put back is said, and the first error stays the reason. */
function putBack(instance: Instance, former: Former, context: TaskContext): void {
  const { managedFile } = instance.layout
  const before = new Map(Object.entries(former.managed))
  try {
    const now = readManagedSettings(managedFile)
    if (now.size === before.size && [...now].every(([name, value]) => before.get(name) === value)) return
    writeManagedSettings(managedFile, before, instance.user)
    if (instance.postmaster) process.kill(instance.postmaster.pid, 'SIGHUP')
    context.log('put the former settings back')
  } catch (error) {
    context.log(`could not put the former settings back: ${toFault(error).detail ?? toFault(error).message}`)
  }
}

/** Throws the first refusal of the instance's own binary. */
export async function check(
  instance: Instance,
  client: pg.Client | null,
  changes: readonly SettingChange[],
  context: TaskContext,
  acrossCluster = false,
) {
  const target: CheckTarget = {
    prefix: instance.enginePrefix,
    layout: instance.layout,
    user: instance.user,
    trial: trialPlace(context.installation, instance.registered.instanceId),
    client,
    signal: context.signal,
    acrossCluster,
  }
  const checked = await checkSettings(target, changes)
  const refused = checked.find((c) => c.fault)?.fault
  if (refused) throw new FaultError(refused)
  return checked
}

/** Makes the engine read the file and asks a connection that was opened after that what is in force. */
async function takeIntoForce(
  instance: Instance,
  client: pg.Client,
  changes: readonly SettingChange[],
): Promise<Map<string, Setting>> {
  await reload(instance, client)
  let refusal: unknown
  const seen = await waitFor(
    async () => {
      try {
        return await instance.connectPlainly((fresh) => readBack(fresh, instance, changes))
      } catch (error) {
        if (error instanceof FaultError && error.fault.code !== 'instance.no_connection') throw error
        refusal = error
        // no connection left says nothing about the settings yet: one may end
        if (sqlState((error as Error).cause) === TOO_MANY_CONNECTIONS) return null
        throw lockedOut(error)
      }
    },
    { boundMs: 5_000, everyMs: 100 },
  )
  if (seen === null) throw lockedOut(refusal)
  return seen
}

const TOO_MANY_CONNECTIONS = '53300'

function lockedOut(error: unknown): Error {
  return fault('setting.locks_out', 'no new connection could be opened after the change', {
    detail: toFault(error).detail ?? toFault(error).message,
    hint: 'The former settings were restored.',
    cause: error,
  })
}

/** The engine must have taken the lines of the managed file, or keep them for its restart. */
export async function readBack(
  client: pg.Client,
  instance: Instance,
  changes: readonly SettingChange[],
): Promise<Map<string, Setting>> {
  const { managedFile } = instance.layout
  const names = changes.filter((c) => c.value !== null).map((c) => c.name.toLowerCase())
  const lines = await client.query<{
    name: string
    sourceFile: string
    sourceLine: number
    applied: boolean
    error: string | null
  }>(fileSettingsSql, [names])
  const settings = await readSettings(
    client,
    instance.layout,
    changes.map((c) => c.name),
  )
  for (const name of names) {
    const own = lines.rows.find((l) => l.name === name && l.sourceFile === managedFile)
    const winner = lines.rows.find((l) => l.name === name && l.sourceFile !== managedFile && l.applied)
    const setting = settings.get(name)
    if (setting?.pendingRestart) continue
    // a new session that still begins with the engine's own value has refused the line; of what a start decides, the same
    // value leaves its source as it was
    if (own?.applied && (setting?.source !== 'default' || setting.context === 'postmaster')) continue
    throw fault('setting.not_applied', `the engine did not take setting "${name}"`, {
      detail: winner
        ? `Line ${winner.sourceLine} of file "${winner.sourceFile}" wins over it.`
        : (own?.error ?? 'It did not read the line.'),
    })
  }
  return settings
}
