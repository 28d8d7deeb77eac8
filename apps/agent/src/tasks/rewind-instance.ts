import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Upstream } from '@floe/agent-contract'
import { fault } from '@floe/domain'
import pg from 'pg'
import {
  removeStandbySignal,
  standbySettings,
  upstreamConninfo,
  writeClusterSettings,
  writeFence,
  writeStandbySignal,
} from '../engine/cluster-files'
import { readManagedSettings, writeManagedSettings } from '../engine/configuration-file'
import type { Instance } from '../engine/instance'
import { readOwnedFile, replaceFile, syncDirectory } from '../host/durable-files'
import { endProcessesIn } from '../host/process-table'
import { runCommand } from '../host/run-command'
import { initialSettings } from './create-instance'
import type { TaskBody, TaskContext } from './task'

/** Files that say who an instance is: pg_rewind brings the source's, so the own ones are kept over it. */
const ownFiles = [
  'postgresql.conf',
  'floe.conf',
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
  const interrupted = existsSync(away)
  await instance.look()
  if (instance.postmaster)
    throw fault('instance.running', `instance "${registered.name}" is running`, { hint: 'Stop it first.' })
  if (interrupted) {
    endProcessesIn(away)
    comeBack(instance, away, task.upstream, context)
    // what a killed pg_rewind leaves is of no use to another one
    return refuse('an earlier pg_rewind was interrupted', context)
  }
  if (!existsSync(layout.dataDirectory)) return refuse('it has no data directory', context)
  const why = await upstreamRefusal(task.upstream, instance)
  if (why) return refuse(why, context)
  context.signal.throwIfAborted()

  writeFence(layout, 'it is being rewound', context.user)
  const kept = ownFiles.map((name) => [name, readOwnedFile(join(layout.dataDirectory, name))] as const)
  const configuration = join(layout.directory, 'rewind.conf')
  replaceFile(configuration, '', { owner: context.user })
  renameSync(layout.dataDirectory, away)
  syncDirectory(layout.directory)
  // single-user recovery, which pg_rewind runs first, knows no standby
  removeStandbySignal({ ...layout, standbySignal: join(away, 'standby.signal') })
  let refused: string | null = null
  try {
    context.log('comparing both histories')
    const own = { name: registered.name, passFile: layout.passFile }
    const r = await runCommand(
      join(instance.enginePrefix, 'bin', 'pg_rewind'),
      [
        '-D',
        away,
        `--source-server=${upstreamConninfo(task.upstream, own, { dbname: 'postgres' })}`,
        `--config-file=${configuration}`,
        '--sync-method=syncfs',
        '--progress',
      ],
      {
        user: context.user,
        onOutput: (text) => {
          const seen = [...text.matchAll(/(\d+)\/(\d+) kB \((\d+)%\)/g)].at(-1)
          if (seen) context.worked(Number(seen[1]) * 1024, Number(seen[2]) * 1024)
        },
      },
    )
    if (r.status !== 0) refused = lastLine(r.stderr) || `pg_rewind ended with status ${r.status ?? r.signal}`
    else context.log(lastLine(r.stderr) || 'rewound')
    if (refused === null)
      for (const [name, text] of kept)
        if (text !== null) replaceFile(join(away, name), text, { owner: context.user })
  } finally {
    comeBack(instance, away, task.upstream, context)
  }
  return refused === null ? { rewound: true, refused: null } : refuse(refused, context)
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
  const { layout, registered } = instance
  const there = {
    ...layout,
    dataDirectory: away,
    managedFile: join(away, 'floe.conf'),
    clusterFile: join(away, 'floe.cluster.conf'),
    standbySignal: join(away, 'standby.signal'),
  }
  writeStandbySignal(there, context.user)
  const managed = readManagedSettings(there.managedFile)
  for (const [name, value] of Object.entries(initialSettings(context.installation))) managed.set(name, value)
  writeManagedSettings(there.managedFile, managed, context.user)
  const own = { name: registered.name, passFile: layout.passFile }
  writeClusterSettings(there, standbySettings(upstream, own), context.user)
  syncDirectory(away)
  renameSync(away, layout.dataDirectory)
  syncDirectory(layout.directory)
}

/** Why the upstream cannot be rewound to, or null. pg_rewind relies on full page images since the histories parted. */
async function upstreamRefusal(upstream: Upstream, instance: Instance): Promise<string | null> {
  const client = new pg.Client({
    host: upstream.host,
    port: upstream.port,
    user: upstream.role,
    password: instance.registered.replicationPassword,
    database: 'postgres',
    connectionTimeoutMillis: 5_000,
    query_timeout: 10_000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ fpw: string; system: string; recovery: boolean }>(
      `select current_setting('full_page_writes') as fpw, pg_is_in_recovery() as recovery,
              (select system_identifier::text from pg_control_system()) as system`,
    )
    if (rows[0]?.fpw !== 'on')
      return 'the primary runs with full_page_writes off; pg_rewind needs the page images to know which pages differ'
    if (rows[0]?.recovery) return 'the primary is still a standby'
    return null
  } catch (error) {
    throw fault('standby.no_upstream', `could not connect to ${upstream.host}:${upstream.port}`, {
      detail: error instanceof Error ? error.message : String(error),
      hint: 'Check that the primary runs and that this host reaches it.',
    })
  } finally {
    await client.end().catch(() => {})
  }
}
