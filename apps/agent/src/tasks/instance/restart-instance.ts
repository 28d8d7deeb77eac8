import type { TaskResult } from '@floe/agent-contract'
import { type Fault, FaultError } from '@floe/domain'
import { refuseHeldBack } from '../../engine/cluster/keep-primary'
import type { Instance } from '../../engine/instance'
import { pendingRestart } from '../../engine/settings/pending-restart'
import {
  driftOf,
  type FileTexts,
  pathOf,
  readFileTexts,
  settingsFiles,
  valuesOf,
} from '../../engine/settings/tracked-files'
import { readOwnedFile } from '../../host/owned-files'
import { replaceInTree } from '../../host/tree'
import type { TaskBody, TaskContext, TaskOf } from '../runner/task'
import { endInstance } from './end-instance'
import { makeReady } from './make-ready'

type RolledBack = NonNullable<TaskResult<'restart-instance'>['rolledBack']>

/**
 * Stops and starts it. Run again after a kill, it sees by the postmaster's start whether the stop was done already. Where
 * the engine does not start with settings that were changed since it last became ready, they are rolled back and it is
 * started with the former ones.
 */
export const restartInstance: TaskBody<'restart-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  context.signal.throwIfAborted()
  await instance.look()
  const restarted = instance.postmaster !== null && instance.postmaster.startedAt > context.startedAt
  if (restarted) context.log('it has been restarted already')
  else if (task.ifPending && instance.postmaster && (await nothingPends(instance))) {
    context.log('no setting waits for a restart')
    return { postmasterPid: instance.postmaster.pid, readyMs: 0, restarted: false }
  } else {
    refuseHeldBack(instance, task.primary)
    await endInstance(instance, task.mode, context)
  }
  try {
    return await makeReady(instance, context, task)
  } catch (error) {
    if (!(error instanceof FaultError) || error.fault.code !== 'instance.not_started') throw error
    const rolledBack = await startWithFormer(instance, context, task, error.fault)
    if (!rolledBack) throw error
    return rolledBack
  }
}

const nothingPends = (instance: Instance) =>
  instance.connect(async (client) => (await pendingRestart(client)).length === 0)

/** Null where nothing was changed since the last start, or the former settings do not help either. */
async function startWithFormer(
  instance: Instance,
  context: TaskContext,
  start: Pick<TaskOf<'restart-instance'>, 'primary'>,
  why: Fault,
): Promise<TaskResult<'restart-instance'> | null> {
  const { good } = instance.files.known
  const now = readFileTexts(instance.layout)
  const changed = good ? driftOf(good, now) : []
  if (!good || changed.length === 0) return null
  const reason = why.detail ?? why.message
  const line = lineToBlame(now, changed, reason)
  context.log(`it did not start: ${reason}`)
  context.log(`going back to the settings it last started with${line ? `; ${line}` : ''}`)
  return instance.files.whileChanging(async () => {
    try {
      for (const file of settingsFiles) write(instance, file, good[file], now[file])
      const ready = await makeReady(instance, context, start)
      instance.files.accept(true)
      const confirmed: RolledBack['confirmed'] = changed.map((c) => ({
        name: c.name,
        oldValue: c.is,
        newValue: c.was,
        pendingRestart: false,
      }))
      // one line a name: of several files the last one counts
      const byName = new Map(confirmed.map((c) => [c.name, c]))
      const managed = Object.fromEntries(valuesOf(good['floe.conf']))
      return { ...ready, rolledBack: { line, reason, confirmed: [...byName.values()], managed } }
    } catch (error) {
      context.log('the former settings do not help; put the changed ones back')
      for (const file of settingsFiles) write(instance, file, now[file], good[file])
      if (error instanceof FaultError && error.fault.code === 'instance.not_started') return null
      throw error
    }
  })
}

/** What a person wrote is kept beside, as `<file>.refused`. */
function write(instance: Instance, file: keyof FileTexts, wanted: string, had: string): void {
  if (wanted === had) return
  const path = pathOf(instance.layout, file)
  if (file === 'postgresql.conf' && readOwnedFile(path) === had)
    replaceInTree(`${path}.refused`, had, instance.user)
  replaceInTree(path, wanted, instance.user)
}

/** The line the engine named, else that of a changed setting it named, else the only one that was changed. */
export function lineToBlame(
  now: FileTexts,
  changed: ReturnType<typeof driftOf>,
  reason: string,
): string | null {
  const named = /file "(?:[^"]*\/)?([^"/]+)" line (\d+)/.exec(reason)
  const file = settingsFiles.find((f) => f === named?.[1])
  if (named && file) return describe(file, Number(named[2]), now)
  const suspects = changed.filter((c) => new RegExp(`\\b${c.name}\\b`).test(reason))
  const [only, ...others] = suspects.length > 0 ? suspects : changed
  if (!only || others.length > 0 || only.line === null) return null
  return describe(only.file, only.line, now)
}

const describe = (file: keyof FileTexts, line: number, now: FileTexts) =>
  `line ${line} of ${file}: ${now[file].split('\n')[line - 1]?.trim() ?? ''}`
