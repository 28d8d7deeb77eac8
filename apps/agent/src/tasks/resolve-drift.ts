import type { TaskResult } from '@floe/agent-contract'
import { fault } from '@floe/domain'
import { z } from 'zod'
import { completeManagedFile, formatConfiguration, readManagedSettings } from '../engine/configuration-file'
import type { Instance } from '../engine/instance'
import { readSettings } from '../engine/settings'
import {
  driftOf,
  type FileTexts,
  pathOf,
  readFileTexts,
  seal,
  settingsFiles,
  valuesOf,
  withoutLines,
} from '../engine/settings-files'
import { replaceInTree } from '../host/tree'
import { reload } from './reload-instance'
import type { TaskBody, TaskContext } from './task'

/** The texts before the task's first run changed anything, and what was drift then. */
const Noted = z.object({
  before: z.record(z.string(), z.string()),
  accepted: z.record(z.string(), z.string()),
})

/**
 * Adopts configuration drift, or reverts it. Either way the engine reads its files again and a new
 * connection has to come in, else everything is put back as it was found.
 */
export const resolveDrift: TaskBody<'resolve-drift'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await instance.look()
  const noted = Noted.safeParse(context.note.read())
  const before = noted.success ? (noted.data.before as FileTexts) : readFileTexts(instance.layout)
  const accepted = noted.success ? (noted.data.accepted as FileTexts) : (instance.known.accepted ?? before)
  const drift = driftOf(accepted, before)
  context.signal.throwIfAborted()
  if (!noted.success) context.note.write({ before, accepted })
  const wanted = task.how === 'adopt' ? adopted(before, drift) : reverted(before, accepted, drift)
  instance.changingSettings = true
  try {
    writeTexts(instance, wanted)
    // what is put back may be a text of an earlier version
    completeManagedFile(instance.layout.managedFile, instance.user)
    const names = [...new Set(drift.map((d) => d.name))]
    const after = await takeIntoForce(instance, names, context)
    instance.acceptFiles(instance.postmaster !== null && ![...after.values()].some((s) => s.pendingRestart))
    const confirmed = names.map((name) => {
      const ofName = drift.findLast((d) => d.name === name)
      const [from, to] = task.how === 'adopt' ? [ofName?.was, ofName?.is] : [ofName?.is, ofName?.was]
      const seen = after.get(name)
      context.log(`${name}: ${from ?? 'default'} → ${seen?.shown ?? to ?? 'default'}`)
      return {
        name,
        oldValue: from ?? null,
        newValue: seen?.pendingRestart ? (to ?? null) : (seen?.shown ?? to ?? null),
        pendingRestart: seen?.pendingRestart ?? false,
      }
    })
    const managed = Object.fromEntries(readManagedSettings(instance.layout.managedFile))
    const result: TaskResult<'resolve-drift'> = { confirmed, managed }
    return result
  } catch (error) {
    writeTexts(instance, before)
    if (instance.postmaster) process.kill(instance.postmaster.pid, 'SIGHUP')
    context.log('put the files back as they were found')
    throw error
  } finally {
    instance.changingSettings = false
    instance.lookAtFiles(0)
  }
}

type Drift = ReturnType<typeof driftOf>

/** What ALTER SYSTEM set moves into the managed file, where it can be changed again; the same values hold. */
function adopted(now: FileTexts, drift: Drift): FileTexts {
  const managed = valuesOf(now['floe.conf'])
  const moved = drift.filter((d) => d.file === 'postgresql.auto.conf' && d.is !== null)
  for (const { name, is } of moved) managed.set(name, is as string)
  return {
    ...now,
    'floe.conf': seal(formatConfiguration(managed)),
    'postgresql.auto.conf': withoutLines(now['postgresql.auto.conf'], new Set(moved.map((d) => d.name))),
  }
}

/** Files that drifted as they were; of postgresql.auto.conf only the lines that drifted, for others write there too. */
function reverted(now: FileTexts, accepted: FileTexts, drift: Drift): FileTexts {
  const wanted = { ...now }
  for (const file of ['postgresql.conf', 'floe.conf'] as const)
    if (drift.some((d) => d.file === file)) wanted[file] = accepted[file]
  const auto = drift.filter((d) => d.file === 'postgresql.auto.conf')
  if (auto.length > 0) {
    const rest = withoutLines(now['postgresql.auto.conf'], new Set(auto.map((d) => d.name)))
    const back = auto.filter((d) => d.was !== null).map((d) => `${d.name} = '${quoted(d.was as string)}'\n`)
    wanted['postgresql.auto.conf'] =
      `${rest}${rest === '' || rest.endsWith('\n') ? '' : '\n'}${back.join('')}`
  }
  return wanted
}

const quoted = (value: string) => value.replaceAll('\\', '\\\\').replaceAll("'", "''")

function writeTexts(instance: Instance, texts: FileTexts): void {
  const now = readFileTexts(instance.layout)
  for (const file of settingsFiles)
    if (texts[file] !== now[file]) replaceInTree(pathOf(instance.layout, file), texts[file], instance.user)
}

async function takeIntoForce(instance: Instance, names: string[], context: TaskContext) {
  if (!instance.postmaster) {
    context.log('the instance is stopped and takes them when it starts')
    return new Map<string, never>()
  }
  await instance.connect((client) => reload(instance, client))
  return instance.connectPlainly(async (client) => {
    const settings = await readSettings(client, instance.layout, names)
    const wrong = [...settings.values()].find((s) => s.fileError !== null)
    if (wrong)
      throw fault('setting.not_applied', `the engine did not take setting "${wrong.name}"`, {
        detail: wrong.fileError ?? '',
      })
    return settings
  })
}
