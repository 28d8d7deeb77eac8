import type { TaskResult } from '@floe/agent-contract'
import { FaultError, fault, type SettingChange } from '@floe/domain'
import type pg from 'pg'
import { type CheckTarget, checkSettings } from '../engine/check-settings'
import { applyChanges, readManagedSettings, writeManagedSettings } from '../engine/configuration-file'
import type { Instance } from '../engine/instance'
import { readSettings } from '../engine/settings'
import fileSettingsSql from '../engine/sql/file-settings.sql'
import { reload } from './reload-instance'
import type { TaskBody, TaskContext } from './task'
import { trialsDirectory } from './trials-directory'

type Confirmed = TaskResult<'change-settings'>['confirmed']

/**
 * Checks the changes by the instance's own binary, writes the managed file, reloads and reads back. Nothing is changed
 * when one of them is refused; when the engine does not take one after all, the file is put back.
 */
export const changeSettings: TaskBody<'change-settings'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await instance.look()
  if (instance.postmaster)
    return instance.connect((client) => changeRunning(instance, client, task.changes, context), 30_000)
  return changeStopped(instance, task.changes, context)
}

async function check(
  instance: Instance,
  client: pg.Client | null,
  changes: readonly SettingChange[],
  context: TaskContext,
) {
  const target: CheckTarget = {
    prefix: instance.enginePrefix,
    layout: instance.layout,
    user: context.user,
    trialsDirectory: trialsDirectory(context.installation),
    client,
    signal: context.signal,
  }
  const checked = await checkSettings(target, changes)
  const refused = checked.find((c) => c.fault)?.fault
  if (refused) throw new FaultError(refused)
  return checked
}

async function changeRunning(
  instance: Instance,
  client: pg.Client,
  changes: readonly SettingChange[],
  context: TaskContext,
): Promise<{ confirmed: Confirmed }> {
  const { managedFile } = instance.layout
  const checked = await check(instance, client, changes, context)
  const before = readManagedSettings(managedFile)
  context.signal.throwIfAborted()
  writeManagedSettings(managedFile, applyChanges(before, changes), context.user)
  context.log(`wrote ${changes.length === 1 ? '1 setting' : `${changes.length} settings`}`)
  try {
    await reload(instance, client)
    await confirmLines(client, instance, changes)
  } catch (error) {
    writeManagedSettings(managedFile, before, context.user)
    if (instance.postmaster) process.kill(instance.postmaster.pid, 'SIGHUP')
    context.log('put the former settings back')
    throw error
  }
  const names = changes.map((c) => c.name)
  const after = await readSettings(client, instance.layout, names)
  const confirmed = checked.map(({ name, oldValue }) => {
    const setting = after.get(name.toLowerCase())
    const pendingRestart = setting?.pendingRestart ?? false
    context.log(
      `${name}: ${oldValue} → ${setting?.shown}${pendingRestart ? ' (the new value waits for a restart)' : ''}`,
    )
    return { name, oldValue, newValue: setting?.shown ?? null, pendingRestart }
  })
  return { confirmed }
}

/** The engine must have taken the lines of the managed file, or keep them for its restart. */
async function confirmLines(
  client: pg.Client,
  instance: Instance,
  changes: readonly SettingChange[],
): Promise<void> {
  const names = changes.filter((c) => c.value !== null).map((c) => c.name.toLowerCase())
  const lines = await client.query<{
    name: string
    sourceFile: string
    sourceLine: number
    applied: boolean
    error: string | null
  }>(fileSettingsSql, [names])
  const settings = await readSettings(client, instance.layout, names)
  for (const name of names) {
    const own = lines.rows.find((l) => l.name === name && l.sourceFile === instance.layout.managedFile)
    const winner = lines.rows.find(
      (l) => l.name === name && l.sourceFile !== instance.layout.managedFile && l.applied,
    )
    if (own?.applied || settings.get(name)?.pendingRestart) continue
    throw fault('setting.not_applied', `the engine did not take setting "${name}"`, {
      detail: winner
        ? `Line ${winner.sourceLine} of file "${winner.sourceFile}" wins over it.`
        : (own?.error ?? 'It did not read the line.'),
    })
  }
}

/** Without a running engine there is nothing to read back from; the binary has tried the whole configuration instead. */
async function changeStopped(
  instance: Instance,
  changes: readonly SettingChange[],
  context: TaskContext,
): Promise<{ confirmed: Confirmed }> {
  const checked = await check(instance, null, changes, context)
  context.signal.throwIfAborted()
  const { managedFile } = instance.layout
  writeManagedSettings(managedFile, applyChanges(readManagedSettings(managedFile), changes), context.user)
  context.log('written; the instance is stopped and takes them when it starts')
  return {
    confirmed: checked.map((c) => ({
      name: c.name,
      oldValue: c.oldValue,
      newValue: c.newValue,
      pendingRestart: false,
    })),
  }
}
