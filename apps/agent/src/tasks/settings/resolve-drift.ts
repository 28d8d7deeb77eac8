import type { TaskResult } from '@floe/agent-contract'
import { z } from 'zod'
import type { Instance } from '../../engine/instance'
import { withInstance } from '../../engine/settings/check-instance'
import { putBack, readWithoutError, takeIntoForce } from '../../engine/settings/into-force'
import { completeManagedFile, managedFileText, managedRecord } from '../../engine/settings/managed-file'
import { pendingRestart } from '../../engine/settings/pending-restart'
import {
  driftOf,
  type FileTexts,
  readFileTexts,
  valuesOf,
  withoutLines,
  writeFileTexts,
} from '../../engine/settings/tracked-files'
import type { TaskBody, TaskContext, TaskOf } from '../runner/task'

/** The texts before the task's first run changed anything, and what was drift then. */
const Noted = z.object({
  before: z.record(z.string(), z.string()),
  accepted: z.record(z.string(), z.string()),
})

/**
 * Adopts configuration drift, or reverts it. Either way the engine reads its files again and a new
 * connection has to come in, else everything is restored as it was found.
 */
export const resolveDrift: TaskBody<'resolve-drift'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  await instance.look()
  const noted = Noted.safeParse(context.note.read())
  const before = noted.success ? (noted.data.before as FileTexts) : readFileTexts(instance.layout)
  const accepted = noted.success
    ? (noted.data.accepted as FileTexts)
    : (instance.files.known.accepted ?? before)
  const drift = driftOf(accepted, before)
  context.signal.throwIfAborted()
  if (!noted.success) context.note.write({ before, accepted })
  const wanted = task.how === 'adopt' ? adopted(before, drift) : reverted(before, accepted, drift)
  return instance.files.whileChanging(async () => {
    try {
      return await resolve(instance, task.how, { wanted, drift }, context)
    } catch (error) {
      putBack(instance, () => writeFileTexts(instance.layout, before, instance.user), context.log)
      throw error
    }
  })
}

async function resolve(
  instance: Instance,
  how: TaskOf<'resolve-drift'>['how'],
  { wanted, drift }: { wanted: FileTexts; drift: Drift },
  context: TaskContext,
): Promise<TaskResult<'resolve-drift'>> {
  const { layout } = instance
  writeFileTexts(layout, wanted, instance.user)
  // what is rolled back may be a text of an earlier version
  completeManagedFile(layout.managedFile, instance.user)
  const names = [...new Set(drift.map((d) => d.name))]
  const after = await withInstance(instance, async (client) => {
    if (!client) {
      context.log('the instance is stopped and takes them when it starts')
      return null
    }
    const inForce = await takeIntoForce(instance, client, (fresh) => readWithoutError(fresh, instance, names))
    return { inForce, pending: await pendingRestart(client) }
  })
  instance.files.accept(after?.pending.length === 0)
  const confirmed = names.map((name) => {
    const ofName = drift.findLast((d) => d.name === name)
    const [from, to] = how === 'adopt' ? [ofName?.was, ofName?.is] : [ofName?.is, ofName?.was]
    const seen = after?.inForce.get(name)
    context.log(`${name}: ${from ?? 'default'} → ${seen?.shown ?? to ?? 'default'}`)
    return {
      name,
      oldValue: from ?? null,
      newValue: seen?.pendingRestart ? (to ?? null) : (seen?.shown ?? to ?? null),
      pendingRestart: seen?.pendingRestart ?? false,
    }
  })
  return { confirmed, managed: managedRecord(layout.managedFile) }
}

type Drift = ReturnType<typeof driftOf>

/** What ALTER SYSTEM set moves into the managed file, where it can be changed again; the same values hold. */
function adopted(now: FileTexts, drift: Drift): FileTexts {
  const managed = valuesOf(now['floe.conf'])
  const moved = drift.filter((d) => d.file === 'postgresql.auto.conf' && d.is !== null)
  for (const { name, is } of moved) managed.set(name, is as string)
  return {
    ...now,
    'floe.conf': managedFileText(managed),
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
