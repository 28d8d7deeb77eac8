import commitModes from '../engine/sql/commit-modes.sql'
import checkpointer from './sql/checkpointer.sql'
import clock from './sql/clock.sql'
import connections from './sql/connections.sql'
import databases from './sql/databases.sql'
import inputOutput from './sql/input-output.sql'
import replay from './sql/replay.sql'
import replication from './sql/replication.sql'
import replicationState from './sql/replication-state.sql'
import runningCheckpoint from './sql/running-checkpoint.sql'
import sharedServer from './sql/shared-server.sql'
import stall from './sql/stall.sql'
import wal from './sql/wal.sql'
import walMonitor from './sql/wal-monitor.sql'
import walOmittedImages from './sql/wal-omitted-images.sql'
import walPageImages from './sql/wal-page-images.sql'

/**
 * One question of the tick. It is asked when the view has the columns, unless another view already answers it; of several
 * with one name the first that fits.
 */
type Question = { name: string; sql: string; view?: string; columns?: readonly string[]; unless?: string }

const questions: readonly Question[] = [
  { name: 'clock', sql: clock },
  { name: 'databases', sql: databases, view: 'pg_stat_database', columns: ['active_time'] },
  { name: 'connections', sql: connections },
  { name: 'stall', sql: stall },
  { name: 'wal', sql: walMonitor, view: 'polar_stat_wal', columns: ['wal_bytes', 'wal_fpi_bytes'] },
  {
    name: 'wal_omitted',
    sql: walOmittedImages,
    view: 'polar_stat_wal',
    columns: ['wal_fpi_omitted_bytes'],
  },
  { name: 'wal', sql: wal, view: 'pg_stat_wal', columns: ['wal_bytes', 'wal_buffers_full'] },
  {
    name: 'wal_page_images',
    sql: walPageImages,
    view: 'pg_stat_wal',
    columns: ['wal_fpi_bytes'],
    unless: 'polar_stat_wal',
  },
  {
    name: 'running_checkpoint',
    sql: runningCheckpoint,
    view: 'polar_stat_checkpoint',
    columns: ['running', 'phase'],
  },
  {
    name: 'checkpointer',
    sql: checkpointer,
    view: 'pg_stat_checkpointer',
    columns: ['num_timed', 'buffers_written'],
  },
  {
    name: 'io',
    sql: inputOutput,
    view: 'pg_stat_io',
    columns: ['read_bytes', 'write_bytes', 'extend_bytes'],
  },
  {
    name: 'shared_server',
    sql: sharedServer,
    view: 'polar_stat_dispatcher',
    columns: ['n_dedicated', 'n_native', 'wait_histogram'],
  },
  { name: 'replication', sql: replication },
  { name: 'replay', sql: replay },
  {
    name: 'replication_state',
    sql: replicationState.replace('/* commit modes */', withoutComments(commitModes)),
  },
]

/** Views whose columns decide what can be asked. */
export const decidingViews = [...new Set(questions.flatMap((q) => (q.view ? [q.view] : [])))]

export type ViewColumns = { view: string; schema: string; columns: readonly string[] }

/**
 * Whoever asks this has its transaction counted as soon as it has ended. Otherwise the server counts those of a session once a
 * second or later, and at the next tick nobody could distinguish the agent's own from those of others. A session that has nothing to
 * report but transactions puts it off all the same, hence the scan of a small catalog.
 */
export const countAtOnce = 'select pg_catalog.pg_stat_force_next_flush() from pg_catalog.pg_am limit 1'

/** The whole tick as one statement with one row, so that it takes one round trip and sees one moment. */
export function tickStatement(views: readonly ViewColumns[]): string {
  const asked = new Map<string, string>()
  for (const q of questions) {
    if (asked.has(q.name) || views.some((v) => v.view === q.unless)) continue
    const found = views.find((v) => v.view === q.view)
    if (q.view && !(found && (q.columns ?? []).every((c) => found.columns.includes(c)))) continue
    const text = withoutComments(q.sql)
    asked.set(q.name, found ? text.replaceAll(found.view, `${found.schema}.${found.view}`) : text)
  }
  asked.set('count_at_once', countAtOnce)
  const from = [...asked].map(([name, text]) => `(${text}) ${name}`).join(' cross join ')
  const spent = 'extract(epoch from clock_timestamp() - statement_timestamp())::float8 * 1000 as own_time'
  return `select *, ${spent} from ${from}`
}

function withoutComments(sql: string): string {
  return sql.replace(/^\s*--.*$/gm, '').trim()
}
