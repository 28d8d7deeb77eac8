import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fault, millisecondsOf, standbySensitiveSettings } from '@floe/domain'
import { confined } from '../../host/confined'
import type { EngineUser } from '../../host/engine-user'
import { endProcessesIn } from '../../host/process-table'
import { engineEnvironment } from '../../host/run-command'
import { type ControlFile, readControlFile } from '../directory/control-file'
import type { Work } from '../work'
import { type BaseBackup, beforeBackup } from './base-backup'
import { justBefore, RecoveryLog, targetTime } from './recovery-log'
import type { RestorePlace } from './restore-place'
import { restoreCommand, segmentsToReplay, type WalArchive } from './wal-archive'

/** An engine that says nothing for so long, though it tells its progress each second, hangs; fetching WAL may take long. */
const SILENT_MS = 1_800_000
/** Of an immediate shutdown; what has not ended then is killed. */
const END_MS = 10_000
/** So often it is started again because the WAL asks for larger settings. */
const STARTS_MAX = 8
/** Names its socket, in a directory of its own; it listens on no address. */
export const RESTORED_PORT = '5432'

/** What is needed to ask a restored engine, as the instance's user. */
export type RestoredEngine = {
  prefix: string
  user: EngineUser
  socketDirectory: string
  end(): Promise<void>
}

export type RecoverOptions = {
  prefix: string
  user: EngineUser
  place: RestorePlace
  backup: BaseBackup
  archive: WalArchive
  at: string
}

/**
 * Starts an engine on the copy of a backup, as the instance's user and confined as an instance is, and lets it replay WAL to
 * the moment, where it stands. Its whole configuration is on the command line. Who gets it ends it; where this throws it has
 * ended.
 */
export async function recoverTo(o: RecoverOptions, context: Work & { say: (text: string) => void }) {
  let control: ControlFile = o.backup.control
  for (let start = 1; ; start++) {
    const child = startEngine(o, control)
    try {
      if (await untilAtTarget(child, o, context)) {
        const { prefix, user } = o
        const { socketDirectory } = o.place
        return { prefix, user, socketDirectory, end: () => end(child, o) } satisfies RestoredEngine
      }
    } catch (error) {
      await end(child, o)
      throw error
    }
    await end(child, o)
    // what the WAL asks for stands in the control file by now
    const asked = await readControlFile(o.prefix, o.place.dataDirectory, o.user)
    if (asked === null || start === STARTS_MAX)
      throw fault('restore.not_recovered', 'the backup could not be recovered', {
        detail: `The WAL asks for larger settings again and again: ${child.log.reason}`,
      })
    context.log('the WAL asks for larger settings: starting again with them')
    control = asked
  }
}

type Child = { process: ChildProcess; log: RecoveryLog; ended: () => boolean; heard: () => Promise<void> }

function settingsOf(o: RecoverOptions, control: ControlFile): Record<string, string> {
  const file = (name: string) => join(o.place.dataDirectory, name)
  return {
    config_file: file('postgresql.conf'),
    hba_file: file('pg_hba.conf'),
    ident_file: file('pg_ident.conf'),
    listen_addresses: '',
    port: RESTORED_PORT,
    unix_socket_directories: o.place.socketDirectory,
    unix_socket_permissions: '0700',
    unix_socket_group: '',
    ssl: 'off',
    restore_command: restoreCommand(o.archive.directory),
    recovery_target_time: targetTime(o.at),
    recovery_target_inclusive: 'on',
    recovery_target_action: 'pause',
    recovery_target_timeline: 'latest',
    recovery_end_command: '',
    archive_cleanup_command: '',
    primary_conninfo: '',
    primary_slot_name: '',
    hot_standby: 'on',
    archive_mode: 'off',
    archive_command: '',
    archive_library: '',
    shared_preload_libraries: '',
    session_preload_libraries: '',
    local_preload_libraries: '',
    dynamic_library_path: '$libdir',
    jit: 'off',
    event_triggers: 'off',
    autovacuum: 'off',
    max_logical_replication_workers: '0',
    fsync: 'off',
    full_page_writes: 'on',
    shared_buffers: '128MB',
    huge_pages: 'off',
    logging_collector: 'off',
    log_destination: 'stderr',
    log_line_prefix: '',
    log_min_messages: 'warning',
    log_min_error_statement: 'panic',
    log_statement: 'none',
    log_startup_progress_interval: '1s',
    log_timezone: 'UTC',
    timezone: 'UTC',
    lc_messages: 'C',
    polar_enable_flashback_log: 'off',
    polar_enable_fast_recovery_area: 'off',
    ...Object.fromEntries(
      standbySensitiveSettings.map((name) => [
        name,
        String(Math.max(control.asked[name], atLeast[name] ?? 0)),
      ]),
    ),
  }
}

const atLeast: Partial<Record<string, number>> = {
  max_connections: 20,
  max_worker_processes: 8,
  max_locks_per_transaction: 64,
}

function startEngine(o: RecoverOptions, control: ControlFile): Child {
  const args = Object.entries(settingsOf(o, control)).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const [file, ...words] = confined(o.user, [
    join(o.prefix, 'bin', 'postgres'),
    ...['-D', o.place.dataDirectory, ...args],
  ])
  const process = spawn(file, words, {
    cwd: '/',
    env: engineEnvironment,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  })
  const log = new RecoveryLog()
  let ended = false
  let wake = () => {}
  process.stderr.setEncoding('utf8').on('data', (text: string) => {
    log.hear(text)
    wake()
  })
  const over = (error?: Error) => {
    if (error) log.hear(`FATAL:  ${error.message}\n`)
    ended = true
    wake()
  }
  process.once('error', over)
  process.once('close', () => over())
  const heard = () =>
    new Promise<void>((resolve) => {
      wake = resolve
    })
  return { process, log, ended: () => ended, heard }
}

/** Waits until it stands at the target; false where it has to be started again with larger settings. */
async function untilAtTarget(
  child: Child,
  o: RecoverOptions,
  context: Work & { say: (text: string) => void },
): Promise<boolean> {
  const { log } = child
  const firstWal = o.backup.firstWal ?? o.archive.files[0]?.name ?? ''
  const bytesOf = (segments: number) => segments * o.backup.control.walSegmentBytes
  const expected = segmentsToReplay(o.archive, firstWal, millisecondsOf(o.at))
  let fetched = 0
  let last = ''
  let lastWords = ''
  let heardAt = performance.now()
  while (!(log.atTarget && log.open)) {
    context.signal.throwIfAborted()
    if (log.tooSmall) return false
    if (child.ended()) throw whyEnded(log, o)
    const words = `${log.lastWal} ${log.lsn}`
    if (words !== lastWords) {
      heardAt = performance.now()
      lastWords = words
    }
    if (performance.now() - heardAt > SILENT_MS)
      throw fault('restore.not_recovered', 'the restored engine has made no progress for 30 minutes', {
        detail: log.lastWal ? `Its last file of WAL is "${log.lastWal}".` : 'It has fetched no WAL.',
      })
    if (log.lastWal !== null && log.lastWal !== last) {
      last = log.lastWal
      fetched++
    }
    context.worked(bytesOf(Math.min(fetched, expected)), bytesOf(expected))
    context.say(
      `replaying WAL to ${o.at}${log.lsn ? `: at ${log.lsn}` : log.lastWal ? `: file ${log.lastWal}` : ''}`,
    )
    await Promise.race([child.heard(), delay(250, undefined, { ref: false })])
  }
  return true
}

function whyEnded(log: RecoveryLog, { archive, backup }: RecoverOptions) {
  const lastFile = log.lastWal
    ? `The last file of WAL that it found there is "${log.lastWal}".`
    : 'It found no file of WAL there that it needs.'
  if (log.says(/recovery ended before configured recovery target was reached/)) {
    const nearest = log.lastTransaction && justBefore(log.lastTransaction)
    return fault('restore.wal_ends_early', `the WAL in "${archive.directory}" ends before that moment`, {
      detail: nearest
        ? `Its newest transaction ended at ${log.lastTransaction}. ${lastFile}`
        : `No transaction ended in it after the backup. ${lastFile}`,
      hint: nearest
        ? `The nearest moment that can be restored is ${nearest}. A later one needs WAL with a transaction that ended after it.`
        : 'Name an archive that goes on, until after that moment.',
    })
  }
  if (log.says(/requested recovery stop point is before consistent recovery point/))
    return beforeBackup(backup.begunBy)
  if (
    log.says(
      /WAL ends before (?:end of online backup|consistent recovery point)|could not locate required checkpoint/,
    )
  )
    return fault('restore.wal_missing', 'WAL that the backup itself needs is missing', {
      detail: `${log.reason} ${lastFile}`,
      hint: 'Name the archive that the backup’s own WAL went into.',
    })
  return fault('restore.not_recovered', 'the backup could not be recovered', {
    detail: log.reason || 'The engine ended without a word.',
  })
}

async function end(child: Child, o: RecoverOptions): Promise<void> {
  const { process: engine } = child
  if (!child.ended() && engine.pid) {
    try {
      process.kill(engine.pid, 'SIGQUIT')
    } catch {
      // it ended in the meantime
    }
    const deadline = performance.now() + END_MS
    while (!child.ended() && performance.now() < deadline)
      await Promise.race([child.heard(), delay(100, undefined, { ref: false })])
  }
  endProcessesIn(o.place.dataDirectory)
}
