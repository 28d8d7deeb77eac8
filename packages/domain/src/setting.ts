import { z } from 'zod'
import { Fault } from './fault'

/** `null` as a value means: back to the default (the line leaves the managed file). */
export const SettingChange = z.object({
  name: z.string().min(1).max(63),
  value: z.string().max(10_000).nullable(),
})
export type SettingChange = z.infer<typeof SettingChange>

/** Why a setting was changed, in a person's words. */
export const ChangeReason = z.string().trim().max(500, 'must have at most 500 characters')

/** PostgreSQL's contexts, in the order of how much a change costs. */
export const SettingContext = z.enum([
  'internal',
  'postmaster',
  'sighup',
  'superuser-backend',
  'backend',
  'superuser',
  'user',
])
export type SettingContext = z.infer<typeof SettingContext>

/** What has to happen before a changed value is in force everywhere. */
export const SettingImpact = z.enum(['read-only', 'restart', 'reload', 'new-connections'])
export type SettingImpact = z.infer<typeof SettingImpact>

export function settingImpact(context: SettingContext): SettingImpact {
  switch (context) {
    case 'internal':
      return 'read-only'
    case 'postmaster':
      return 'restart'
    case 'backend':
    case 'superuser-backend':
      return 'new-connections'
    default:
      return 'reload'
  }
}

/** A setting as the instance itself reported it, before and after a change. */
export const ConfirmedSetting = z.object({
  name: z.string(),
  oldValue: z.string().nullable(),
  /** As SHOW prints it after the reload; where a restart is pending, still the old one. */
  newValue: z.string().nullable(),
  pendingRestart: z.boolean(),
})
export type ConfirmedSetting = z.infer<typeof ConfirmedSetting>

/** What the instance's own binary says that a change would do, or why it is refused. Nothing was changed. */
export const CheckedSetting = z.object({
  name: z.string(),
  /** What is in force, or waits for a restart already. */
  oldValue: z.string().nullable(),
  newValue: z.string().nullable(),
  impact: SettingImpact,
  fault: Fault.nullable(),
  /** Of a setting that standbys may not have smaller: what it runs with, and what the change would make of it. */
  oldNumber: z.number().nullable(),
  newNumber: z.number().nullable(),
  /** What it brings along that nobody asked for; it is not refused. Left out where nothing, and by agents before contract 1.29. */
  warning: Fault.optional(),
})
export type CheckedSetting = z.infer<typeof CheckedSetting>

/** One GUC as the instance's own binary describes it (pg_settings and pg_file_settings). Values are PostgreSQL's text. */
export const Setting = z.object({
  name: z.string(),
  /** In `unit`, as pg_settings says it. */
  value: z.string().nullable(),
  /** As SHOW prints it, with a readable unit; of one that SHOW hides, what is set. */
  shown: z.string().nullable(),
  unit: z.string().nullable(),
  type: z.enum(['bool', 'integer', 'real', 'string', 'enum']),
  context: SettingContext,
  category: z.string(),
  description: z.string(),
  detail: z.string().nullable(),
  min: z.string().nullable(),
  max: z.string().nullable(),
  choices: z.array(z.string()).nullable(),
  bootValue: z.string().nullable(),
  resetValue: z.string().nullable(),
  source: z.string(),
  sourceFile: z.string().nullable(),
  sourceLine: z.number().int().nullable(),
  pendingRestart: z.boolean(),
  /** The value Floe's managed file holds, where it holds one. */
  managedValue: z.string().nullable(),
  /** What pg_file_settings says is wrong with the line that sets it. */
  fileError: z.string().nullable(),
})
export type Setting = z.infer<typeof Setting>

/** Our words on the settings that matter to Floe's users. */
export const settingWords: Record<string, { title: string; meaning: string; warning?: string }> = {
  full_page_writes: {
    title: 'Full-page writes',
    meaning:
      'Writes the whole page to the WAL at its first change after a checkpoint, so that a page torn by a crash can be restored. Off writes much less WAL.',
    warning:
      'Refused while no standby is a healthy page repair source. If all sources are lost later, the guard re-enables full-page images until one is healthy.',
  },
  polar_page_repair_guard: {
    title: 'Page repair guard',
    meaning:
      'With full-page writes off, re-enables full-page images while no page repair source is healthy. Off leaves the decision to full-page writes alone.',
    warning:
      'With the guard off, a page torn by an operating-system crash or power loss may not be repaired. Use it only for data that you can load again.',
  },
  polar_page_repair_policy: {
    title: 'Page repair policy',
    meaning:
      'Which pages recovery fetches from a source: those that fail verification (checksum), every page that WAL changes without an image (always), or none (off).',
  },
  polar_page_repair_sources: {
    title: 'Page repair sources',
    meaning:
      'The members that torn pages are fetched from, in order. Floe sets it for the cluster: choose the sources on its replication page.',
  },
  polar_bulk_read_size: {
    title: 'Bulk read size',
    meaning:
      'How much a sequential scan, VACUUM, ANALYZE or the heap scan of an index build reads in one I/O. 0 reads single blocks. It is the same setting as io_combine_limit.',
  },
  polar_bulk_extend_size: {
    title: 'Bulk extend size',
    meaning: 'How much a table grows at once under INSERT and COPY. 0 is PostgreSQL’s own behaviour.',
  },
  polar_bulk_write_size: {
    title: 'Bulk write size',
    meaning:
      'How much COPY, CREATE TABLE AS, VACUUM and checkpoints write in one I/O; less where many connections share small shared_buffers. 0 writes single blocks, as PostgreSQL does.',
  },
  polar_index_create_bulk_extend_size: {
    title: 'Index build extend size',
    meaning: 'How much an index grows at once while it is built. 0 is PostgreSQL’s own behaviour.',
  },
  polar_recovery_bulk_extend_size: {
    title: 'Recovery extend size',
    meaning: 'How much a table grows at once while WAL is replayed. 0 is PostgreSQL’s own behaviour.',
  },
  polar_enable_flashback_log: {
    title: 'Flashback log',
    meaning:
      'Keeps pages as they were before they are overwritten, so that tables can be flashed back to any moment in its window. Also turns on track_commit_timestamp.',
    warning: 'Turned off, the log is removed at the next start: no moment before it can be reached any more.',
  },
  polar_enable_fast_recovery_area: {
    title: 'Fast recovery area',
    meaning:
      'Keeps the WAL and commit status that the window of the flashback log needs, and the log for the rotation time. Off, a table can be flashed back only as far as WAL happens to be there.',
  },
  polar_flashback_log_mode: {
    title: 'Flashback log mode',
    meaning:
      'async: the window ends when a page cannot be kept or the operating system crashes. sync: a page is durable in the log before it is overwritten; writes wait for it.',
  },
  polar_flashback_log_keep_segments: {
    title: 'Flashback log segments',
    meaning: 'How many segments of 256 MB the flashback log keeps without a fast recovery area.',
  },
  polar_flashback_log_max_size: {
    title: 'Flashback log size limit',
    meaning:
      'How large the flashback log may become. At the limit its oldest points are dropped, and the window gets shorter. 0 means no limit.',
  },
  polar_flashback_reserve: {
    title: 'Flashback reserve',
    meaning:
      'How much room the window leaves free on each disk that has WAL, the log or files of deleted tables. Below it the oldest of these files go, then the oldest points with their WAL. -1 is a tenth of the disk, at most 4 GB; 0 is none.',
  },
  polar_fast_recovery_area_rotation: {
    title: 'Fast recovery area rotation',
    meaning: 'How far back the window reaches with a fast recovery area, where size and WAL allow it.',
  },
  polar_flashback_point_timeout: {
    title: 'Flashback point timeout',
    meaning:
      'Longest time between two points of the flashback log. A checkpoint is requested when it has passed; rarer points make the log smaller and a flashback slower.',
  },
  polar_flashback_point_segments: {
    title: 'Flashback point segments',
    meaning: 'WAL segments after which a checkpoint is requested to have a new flashback point.',
  },
  polar_flashback_log_compression: {
    title: 'Flashback log compression',
    meaning: 'How pages in the flashback log are compressed: zstd (the smallest), lz4, pglz or off.',
  },
  polar_enable_shared_server: {
    title: 'Shared Server',
    meaning:
      'Sessions that log in through the shared port share backends. Off, they keep a backend of their own; sessions that are shared stay shared until they end. Experimental.',
  },
  polar_ss_port: {
    title: 'Shared port',
    meaning:
      'Port for sessions that share backends, on the addresses of listen_addresses. 0: nothing of Shared Server exists in the instance.',
  },
  polar_ss_backend_max_count: {
    title: 'Workers',
    meaning:
      'Most workers of all pools together. -5 is a fifth of max_connections; 0 and -1 are all of them.',
  },
  polar_ss_session_wait_timeout: {
    title: 'Session wait timeout',
    meaning: 'A session that has waited for a worker for so long ends with SQLSTATE 53300. 0 means no limit.',
  },
  polar_ss_shared_memory_size: {
    title: 'Memory of shared sessions',
    meaning:
      'What all sessions together may take along when they leave a worker. When it is used up, sessions keep their workers and logins are refused.',
  },
  polar_ss_max_sessions: {
    title: 'Maximum shared sessions',
    meaning: 'How many sessions the shared port accepts at once. Each takes about 0.6 kB of shared memory.',
  },
  polar_ss_dispatcher_count: {
    title: 'Dispatchers',
    meaning:
      'Processes that say which worker serves which session, each with its part of the sessions and, where TLS clients are shared, a process that ends TLS. More than one where one keeps a processor busy. Each is one of max_worker_processes.',
  },
  polar_ss_share_tls: {
    title: 'Share TLS clients',
    meaning:
      'Clients that use TLS share backends, too: a process of the server for each dispatcher ends TLS for them, which costs processor time and can read what they say. Off, each keeps a backend of its own.',
  },
  polar_ss_dedicated_dbuser_names: {
    title: 'Native databases and roles',
    meaning: 'Databases and roles whose sessions keep a backend of their own: d1/*, */u1, d2/u2.',
  },
  max_wal_size: {
    title: 'Maximum WAL size',
    meaning:
      'WAL written since the last checkpoint that triggers the next one. Larger means rarer checkpoints and a longer recovery.',
  },
  checkpoint_timeout: {
    title: 'Checkpoint timeout',
    meaning: 'Longest time between two checkpoints.',
  },
  checkpoint_completion_target: {
    title: 'Checkpoint completion target',
    meaning: 'Share of the checkpoint interval over which its writes are spread.',
  },
  shared_buffers: {
    title: 'Shared buffers',
    meaning:
      'Memory for PostgreSQL’s own page cache. About a quarter of the memory that this instance may use is a usual start.',
  },
  synchronous_commit: {
    title: 'Synchronous commit',
    meaning:
      'What a commit waits for before it is acknowledged. Off may lose the last transactions after a crash, but never corrupts.',
  },
  polar_commit_floor: {
    title: 'Commit floor',
    meaning:
      'The minimum that a commit waits for, whatever synchronous_commit of its session, role or database. While it is not off, a cancel does not end the wait for standbys.',
    warning:
      'With a floor, commits wait as long as the synchronous standbys are away; only closing the client connections ends the wait.',
  },
  fsync: {
    title: 'fsync',
    meaning: 'Forces writes to durable storage.',
    warning: 'With fsync off, an operating-system crash can destroy the whole instance.',
  },
}

/** The settings of the I/O page, in the order shown. */
export const ioSettings = [
  'polar_bulk_read_size',
  'polar_bulk_write_size',
  'polar_bulk_extend_size',
  'polar_index_create_bulk_extend_size',
  'full_page_writes',
  'polar_page_repair_guard',
] as const

/** The settings of the card of Shared Server, in the order shown. */
export const sharedServerSettings = [
  'polar_enable_shared_server',
  'polar_ss_port',
  'polar_ss_backend_max_count',
  'polar_ss_session_wait_timeout',
  'polar_ss_max_sessions',
  'polar_ss_shared_memory_size',
  'polar_ss_dispatcher_count',
  'polar_ss_share_tls',
  'polar_ss_dedicated_dbuser_names',
] as const
