import { renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Upstream } from '@floe/agent-contract'
import { fault, lsnDistance, toFault } from '@floe/domain'
import { removeFile, replaceFile, syncDirectory } from '@floe/host/replace-file'
import { waitFor } from '@floe/host/wait'
import {
  removeStandbySignal,
  standbySettings,
  upstreamConninfo,
  writeClusterSettings,
  writeFence,
  writeStandbySignal,
} from '../../engine/cluster/member-files'
import { readControlFile } from '../../engine/directory/control-file'
import { dataFiles } from '../../engine/directory/layout'
import type { Instance } from '../../engine/instance'
import { waitUntilReaped } from '../../engine/process/postmaster'
import { initialSettings } from '../../engine/settings/initial'
import { readManagedSettings, writeManagedSettings } from '../../engine/settings/managed-file'
import { compareHistories, endOfWal } from '../../engine/wal/compare-histories'
import { readOwnedFile } from '../../host/owned-files'
import { endProcessesIn } from '../../host/process-table'
import { runCommand } from '../../host/run-command'
import { isThere, removeInTree, replaceInTree } from '../../host/tree'
import { endInstance } from '../instance/end-instance'
import type { TaskBody, TaskContext } from '../runner/task'
import { startFollowing } from './start-following'

/** Files that say who an instance is: pg_rewind brings the source's, so the own ones are kept over it. */
const ownFiles = [
  'postgresql.conf',
  'floe.conf',
  'floe.tls.conf',
  'floe_server.pem',
  'pg_hba.conf',
  'floe_hba.conf',
  'pg_ident.conf',
  'floe_ident.conf',
]

/**
 * Takes a member that was left behind back to where its history and the upstream's part. While pg_rewind works, the data
 * directory has another name: nobody can start what is half-way. A refusal is an answer, not a fault: the caller copies.
 */
export const rewindInstance: TaskBody<'rewind-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { layout, registered } = instance
  const away = join(layout.directory, 'pgdata.rewinding')
  const interrupted = isThere(away)
  // what a run that was killed has left behind works there
  if (interrupted) {
    endProcessesIn(away)
    await waitFor(async () => !instance.works(), { boundMs: 5_000, everyMs: 20 })
  }
  await instance.look()
  if (instance.works())
    throw fault('instance.running', `instance "${registered.name}" is running`, { hint: 'Stop it first.' })
  if (interrupted) {
    comeBack(instance, away, task.upstream, context)
  }
  // what it leaves is of no use to another one, and looks whole: its WAL and control file are the primary's
  if (interrupted || isThere(layout.rewindMark))
    return refuse('an earlier pg_rewind did not end well', context)
  if (!isThere(layout.dataDirectory)) return refuse('it has no data directory', context)
  const control = await readControlFile(instance.enginePrefix, layout.dataDirectory, instance.user)
  if (!control) return refuse('its control file cannot be read', context)
  const found = await compareHistories(control, task.upstream, instance, context)
  if ('refused' in found) return refuse(found.refused, context)
  context.signal.throwIfAborted()
  if (found.nothingToTakeBack) {
    context.log('it followed the same history; there is no WAL to discard')
    return prove(instance, task.upstream, context)
  }

  await waitUntilReaped(layout, context.signal)
  writeFence(layout, 'it is being rewound', instance.user)
  const kept = ownFiles.map((name) => [name, readOwnedFile(join(layout.dataDirectory, name))] as const)
  const configuration = join(layout.directory, 'rewind.conf')
  replaceFile(configuration, '', { giveTo: instance.user })
  replaceFile(layout.rewindMark, task.keptAside ?? '')
  renameSync(layout.dataDirectory, away)
  syncDirectory(layout.directory)
  // single-user recovery, which pg_rewind runs first, knows no standby
  removeStandbySignal({ standbySignal: join(away, 'standby.signal') }, instance.user)
  let refused: string | null = null
  try {
    context.log('comparing both histories')
    const r = await runCommand(
      join(instance.enginePrefix, 'bin', 'pg_rewind'),
      [
        '-D',
        away,
        `--source-server=${upstreamConninfo(task.upstream, instance.asking, { dbname: 'postgres' })}`,
        `--config-file=${configuration}`,
        '--sync-method=syncfs',
        '--progress',
      ],
      {
        user: instance.user,
        onOutput: (text) => {
          const seen = [...text.matchAll(/(\d+)\/(\d+) kB \((\d+)%\)/g)].at(-1)
          if (seen) context.worked(Number(seen[1]) * 1024, Number(seen[2]) * 1024)
        },
      },
    )
    if (r.status !== 0) refused = lastLine(r.stderr) || `pg_rewind ended with status ${r.status ?? r.signal}`
    else {
      context.log(lastLine(r.stderr) || 'rewound')
      refused = await receivedTooMuch(r.stderr, away, instance, context)
    }
    if (refused === null)
      for (const [name, text] of kept)
        if (text !== null) replaceInTree(join(away, name), text, instance.user)
        else removeInTree(join(away, name), instance.user)
  } finally {
    comeBack(instance, away, task.upstream, context)
  }
  if (refused !== null) return refuse(refused, context)
  removeFile(layout.rewindMark)
  return prove(instance, task.upstream, context)
}

/** What a person has to fix: a new copy would not fix it, or would fail as well. */
const notOfTheData =
  /configuration file|could not load library|could not (bind|create any)|lock file|no space left|permission denied/i

/**
 * pg_rewind judges by histories, and may be content with files that the engine does not start from, or cannot follow with.
 * So it is started once, fenced; where its files are the reason that it does not follow, a copy is what helps.
 */
async function prove(instance: Instance, upstream: Upstream, context: TaskContext) {
  writeFence(instance.layout, 'it is being rewound', instance.user)
  context.log('starting it once, to see that it can follow')
  try {
    await startFollowing(instance, upstream, context)
  } catch (error) {
    const { code, detail, message } = toFault(error)
    const ofItsFiles = code === 'instance.not_started' && !notOfTheData.test(detail ?? '')
    if (!ofItsFiles && code !== 'standby.cannot_follow') throw error
    return refuse(`it does not follow with what pg_rewind left: ${detail ?? message}`, context)
  }
  await endInstance(instance, 'fast', context)
  return { rewound: true, refused: null }
}

/**
 * pg_rewind judges a standby by what it had replayed. WAL that it had only received is replayed when it starts, and must
 * not go beyond where the histories diverged.
 */
async function receivedTooMuch(
  said: string,
  dataDirectory: string,
  instance: Instance,
  context: TaskContext,
): Promise<string | null> {
  if (!/no rewind required/.test(said)) return null
  const parted = /diverged at WAL location ([0-9A-F]+\/[0-9A-F]+) on timeline/.exec(said)?.[1]
  // one that was killed right after its promotion shows its timeline only when it has recovered
  if (parted === undefined) return 'it was a primary on the timeline that the primary is on: two histories'
  const end = await endOfWal(instance, context, { dataDirectory }).catch(() => null)
  if (end !== null && (lsnDistance(parted, end) ?? 1) <= 0) return null
  return `it has WAL up to ${end ?? 'a place that could not be read'}, and the histories parted at ${parted}`
}

const lastLine = (text: string) =>
  text
    .split('\n')
    .map((line) => line.replace(/^pg_rewind: (error: )?/, '').trim())
    .filter((line) => line !== '' && !/kB \(\d+%\)/.test(line))
    .slice(-2)
    .join('; ')

function refuse(reason: string, context: TaskContext) {
  context.log(`pg_rewind is not possible: ${reason}`)
  return { rewound: false, refused: reason }
}

/** As a standby of the upstream the directory gets its name back. */
function comeBack(instance: Instance, away: string, upstream: Upstream, context: TaskContext): void {
  const { layout } = instance
  const there = { ...layout, ...dataFiles(away) }
  writeStandbySignal(there, instance.user)
  const managed = readManagedSettings(there.managedFile)
  for (const [name, value] of Object.entries(initialSettings(context.installation))) managed.set(name, value)
  writeManagedSettings(there.managedFile, managed, instance.user)
  writeClusterSettings(there, standbySettings(upstream, instance.asking), instance.user)
  renameSync(away, layout.dataDirectory)
  syncDirectory(layout.directory)
}
