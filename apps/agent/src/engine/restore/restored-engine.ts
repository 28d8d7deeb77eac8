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
import { type RestoreSource, restoreCommand, segmentsToReplay } from './wal-archive'

/** An engine that says nothing for so long, though it reports its progress each second, hangs; fetching WAL may take long. */
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

/** How far it replays: to a moment, where it stands and can be asked, or through one record of a timeline, where it shuts down. */
export type RecoveryTarget =
  | { kind: 'time'; at: string }
  | { kind: 'record'; beginLsn: string; endLsn: string; timeline: number }

export type RecoverOptions = {
  prefix: string
  user: EngineUser
  place: RestorePlace
  backup: BaseBackup
  source: RestoreSource
  target: RecoveryTarget
}

/**
 * Starts an engine on the copy of a backup, as the instance's user and confined as an instance is, and lets it replay WAL to
 * its target. Its whole configuration is on the command line. Who gets it ends it; where this throws it has ended.
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
    restore_command: restoreCommand(o.source.directories),
    ...targetSettings(o.target),
    recovery_target_inclusive: 'on',
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

const targetSettings = (target: RecoveryTarget): Record<string, string> =>
  target.kind === 'time'
    ? {
        recovery_target_time: targetTime(target.at),
        recovery_target_action: 'pause',
        recovery_target_timeline: 'latest',
      }
    : {
        recovery_target_lsn: target.beginLsn,
        // in order: its restartpoint is at the newest checkpoint, and what changed since is told by its control file
        recovery_target_action: 'shutdown',
        recovery_target_timeline: String(target.timeline),
      }

const targetWords = (target: RecoveryTarget) => (target.kind === 'time' ? target.at : target.endLsn)

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

/** Whether it has come to where it was to come. One that shuts down there has ended by then. */
const hasArrived = ({ log, ended }: Child, target: RecoveryTarget): boolean =>
  target.kind === 'time'
    ? log.atTarget && log.open
    : ended() && log.says(/^LOG:\s+shutdown at recovery target/)

/** Waits until it stands at the target; false where it has to be started again with larger settings. */
async function untilAtTarget(
  child: Child,
  o: RecoverOptions,
  context: Work & { say: (text: string) => void },
): Promise<boolean> {
  const { log } = child
  const firstWal = o.backup.firstWal ?? o.source.files[0]?.name ?? ''
  const bytesOf = (segments: number) => segments * o.backup.control.walSegmentBytes
  const until = o.target.kind === 'time' ? millisecondsOf(o.target.at) : Number.POSITIVE_INFINITY
  const expected = segmentsToReplay(o.source, firstWal, until)
  let fetched = 0
  let last = ''
  let lastWords = ''
  let heardAt = performance.now()
  while (!hasArrived(child, o.target)) {
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
      `replaying WAL to ${targetWords(o.target)}${log.lsn ? `: at ${log.lsn}` : log.lastWal ? `: file ${log.lastWal}` : ''}`,
    )
    await Promise.race([child.heard(), delay(250, undefined, { ref: false })])
  }
  return true
}

function whyEnded(log: RecoveryLog, { source, backup, target }: RecoverOptions) {
  const lastFile = log.lastWal
    ? `The last file of WAL that it found there is "${log.lastWal}".`
    : 'It found no file of WAL there that it needs.'
  if (log.says(/recovery ended before configured recovery target was reached/))
    return target.kind === 'time'
      ? endsBefore(log, source, lastFile)
      : endsBeforeRecord(target.endLsn, lastFile)
  if (log.says(/requested recovery stop point is before consistent recovery point/))
    return target.kind === 'time' ? beforeBackup(backup.begunBy) : aheadOf(target.endLsn)
  if (target.kind === 'record' && log.says(/requested timeline \d+|recovery target timeline \d+/))
    return otherTimeline(target.timeline, log.reason)
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

function endsBefore(log: RecoveryLog, { directories }: RestoreSource, lastFile: string) {
  const nearest = log.lastTransaction && justBefore(log.lastTransaction)
  return fault('restore.wal_ends_early', `the WAL in "${directories.join('", "')}" ends before that moment`, {
    detail: nearest
      ? `Its newest transaction ended at ${log.lastTransaction}. ${lastFile}`
      : `No transaction ended in it after the backup. ${lastFile}`,
    hint: nearest
      ? `The nearest moment that can be restored is ${nearest}. A later one needs WAL with a transaction that ended after it.`
      : 'Name an archive that goes on, until after that moment.',
  })
}

const endsBeforeRecord = (endLsn: string, lastFile: string) =>
  fault('restore.wal_ends_early', `the WAL does not lead from the backup to the primary’s end at ${endLsn}`, {
    detail: `${lastFile} The one after it is missing, is damaged, or is of another history.`,
    hint: 'Name an archive with all of the primary’s WAL since the backup was begun.',
  })

export const aheadOf = (endLsn: string) =>
  fault('restore.backup_ahead', 'the backup ended after the primary did', {
    detail: `It is not consistent before a position later than ${endLsn}, the end of the primary’s WAL.`,
    hint: 'Name a backup of this primary that had ended when it crashed.',
  })

export const otherTimeline = (timeline: number, why: string) =>
  fault('restore.other_timeline', 'the backup is of another history than the primary', {
    detail: `The primary is on timeline ${timeline}. ${why}`,
    hint: 'Name a backup of this timeline, or of one that it came from, and an archive with its history file.',
  })

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
