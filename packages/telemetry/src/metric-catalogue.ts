/**
 * Every metric Floe keeps of an instance, once. The position in `metrics` is the position in the stored array, so this
 * list is append-only: a metric may be added at the end, never moved, renamed or removed; golden/metrics.txt holds it.
 * How one is added: docs/checklists/add-metric.md.
 *
 * `rate`: per second, from the difference of a counter over the measured interval. `gauge`: the value at the tick.
 * `ratio`: 0 to 1 over the interval. A value that is not known is null, never 0.
 */
export type MetricKind = 'rate' | 'gauge' | 'ratio'
export type MetricUnit = '1/s' | 'B/s' | 'B' | 'ms' | 's' | '1' | 'ratio' | 'cores'
/** Columns of the agent's tick that hold when counters were last reset: over a reset no difference counts. */
export const counterResets = [
  'databases_reset',
  'wal_reset',
  'wal_fpi_reset',
  'checkpointer_reset',
  'io_reset',
  'dispatcher_reset',
] as const
export type CounterReset = (typeof counterResets)[number]
export type MetricDefinition = {
  readonly name: string
  readonly kind: MetricKind
  readonly unit: MetricUnit
  /** Where the number comes from: view.column, file, or a computation. */
  readonly source: string
  readonly help: string
  /** What the agent computes it from, where that is a counter: a column of the same name unless `name` differs. */
  readonly counter?: { readonly name: string; readonly reset: CounterReset | null }
}

/** `reset`: null for a counter that only ends with the processes it counts. */
const rate = <const N extends string>(
  name: N,
  unit: MetricUnit,
  reset: CounterReset | null,
  source: string,
  help: string,
) => ({ name, kind: 'rate', unit, source, help, counter: { name, reset } }) as const
/** A rate made of several counters. */
const computedRate = <N extends string>(name: N, unit: MetricUnit, source: string, help: string) =>
  ({ name, kind: 'rate', unit, source, help }) as const
/** `counter`: where it is computed from a counter that is no metric itself. */
const gauge = <N extends string, const C extends MetricDefinition['counter'] = undefined>(
  name: N,
  unit: MetricUnit,
  source: string,
  help: string,
  counter?: C,
) => ({ name, kind: 'gauge', unit, source, help, counter: counter as C }) as const
const ratio = <N extends string>(name: N, source: string, help: string) =>
  ({ name, kind: 'ratio', unit: 'ratio', source, help }) as const

export const metrics = [
  computedRate('tps', '1/s', 'pg_stat_database.xact_commit + xact_rollback', 'transactions ended per second'),
  rate(
    'xact_commit',
    '1/s',
    'databases_reset',
    'pg_stat_database.xact_commit',
    'transactions committed per second',
  ),
  rate(
    'xact_rollback',
    '1/s',
    'databases_reset',
    'pg_stat_database.xact_rollback',
    'transactions rolled back per second',
  ),
  gauge(
    'xact_active_time',
    'ms',
    'pg_stat_database.active_time / transactions',
    'mean time a transaction spent executing statements, over the interval',
    { name: 'active_time', reset: 'databases_reset' },
  ),
  rate(
    'tup_returned',
    '1/s',
    'databases_reset',
    'pg_stat_database.tup_returned',
    'rows read by scans per second',
  ),
  rate(
    'tup_fetched',
    '1/s',
    'databases_reset',
    'pg_stat_database.tup_fetched',
    'rows fetched by index scans per second',
  ),
  rate('tup_inserted', '1/s', 'databases_reset', 'pg_stat_database.tup_inserted', 'rows inserted per second'),
  rate('tup_updated', '1/s', 'databases_reset', 'pg_stat_database.tup_updated', 'rows updated per second'),
  rate('tup_deleted', '1/s', 'databases_reset', 'pg_stat_database.tup_deleted', 'rows deleted per second'),
  rate(
    'blks_hit',
    '1/s',
    'databases_reset',
    'pg_stat_database.blks_hit',
    'blocks found in shared buffers per second',
  ),
  rate(
    'blks_read',
    '1/s',
    'databases_reset',
    'pg_stat_database.blks_read',
    'blocks read from outside shared buffers per second',
  ),
  ratio(
    'cache_hit_ratio',
    'pg_stat_database.blks_hit, blks_read',
    'blocks found in shared buffers, share of all',
  ),
  rate(
    'temp_bytes',
    'B/s',
    'databases_reset',
    'pg_stat_database.temp_bytes',
    'bytes written to temporary files per second',
  ),
  rate('deadlocks', '1/s', 'databases_reset', 'pg_stat_database.deadlocks', 'deadlocks per second'),
  gauge('connections_total', '1', 'pg_stat_activity', 'client connections'),
  gauge('connections_active', '1', 'pg_stat_activity.state', 'client connections executing a statement'),
  gauge('connections_idle', '1', 'pg_stat_activity.state', 'client connections waiting for their client'),
  gauge(
    'connections_idle_in_transaction',
    '1',
    'pg_stat_activity.state',
    'client connections idle in a transaction (also an aborted one)',
  ),
  gauge(
    'connections_waiting',
    '1',
    'pg_stat_activity.wait_event_type = Lock',
    'client connections waiting for a lock',
  ),
  gauge('connections_max', '1', 'pg_settings.max_connections', 'most client connections allowed'),
  gauge('locks_waiting', '1', 'pg_locks.granted', 'lock requests not granted'),
  gauge('oldest_transaction', 's', 'pg_stat_activity.xact_start', 'age of the oldest open transaction'),
  rate('wal_bytes', 'B/s', 'wal_reset', 'pg_stat_wal.wal_bytes', 'WAL written per second'),
  rate('wal_records', '1/s', 'wal_reset', 'pg_stat_wal.wal_records', 'WAL records per second'),
  rate('wal_fpi', '1/s', 'wal_reset', 'pg_stat_wal.wal_fpi', 'full-page images per second'),
  rate(
    'wal_fpi_bytes',
    'B/s',
    'wal_fpi_reset',
    'pg_stat_wal.wal_fpi_bytes or polar_stat_wal.wal_fpi_bytes',
    'bytes of full-page images in the WAL per second',
  ),
  rate(
    'wal_buffers_full',
    '1/s',
    'wal_reset',
    'pg_stat_wal.wal_buffers_full',
    'WAL writes because the WAL buffers were full',
  ),
  rate(
    'checkpoints_timed',
    '1/s',
    'checkpointer_reset',
    'pg_stat_checkpointer.num_timed',
    'checkpoints by time per second',
  ),
  rate(
    'checkpoints_requested',
    '1/s',
    'checkpointer_reset',
    'pg_stat_checkpointer.num_requested',
    'requested checkpoints per second',
  ),
  rate(
    'checkpoint_write_time',
    'ms',
    'checkpointer_reset',
    'pg_stat_checkpointer.write_time',
    'time checkpoints spent writing, ms per second',
  ),
  rate(
    'checkpoint_sync_time',
    'ms',
    'checkpointer_reset',
    'pg_stat_checkpointer.sync_time',
    'time checkpoints spent syncing, ms per second',
  ),
  rate(
    'checkpoint_buffers',
    '1/s',
    'checkpointer_reset',
    'pg_stat_checkpointer.buffers_written',
    'buffers written by checkpoints per second',
  ),
  gauge('checkpoint_running', '1', 'server log', '1 while a checkpoint or restartpoint runs, else 0'),
  gauge('checkpoint_running_time', 's', 'server log', 'how long the running checkpoint has been running'),
  gauge(
    'checkpoint_running_buffers',
    '1',
    'pg_stat_checkpointer.buffers_written since the start line in the server log',
    'buffers the running checkpoint has written so far',
  ),
  rate(
    'io_read_bytes',
    'B/s',
    'io_reset',
    'pg_stat_io.read_bytes, object relation',
    'relation bytes read per second',
  ),
  rate(
    'io_write_bytes',
    'B/s',
    'io_reset',
    'pg_stat_io.write_bytes, object relation',
    'relation bytes written per second',
  ),
  rate(
    'io_extend_bytes',
    'B/s',
    'io_reset',
    'pg_stat_io.extend_bytes, object relation',
    'bytes relations grew by per second',
  ),
  rate('io_reads', '1/s', 'io_reset', 'pg_stat_io.reads, object relation', 'relation reads per second'),
  rate('io_writes', '1/s', 'io_reset', 'pg_stat_io.writes, object relation', 'relation writes per second'),
  rate(
    'io_extends',
    '1/s',
    'io_reset',
    'pg_stat_io.extends, object relation',
    'relation extensions per second',
  ),
  rate('io_fsyncs', '1/s', 'io_reset', 'pg_stat_io.fsyncs, object relation', 'relation fsyncs per second'),
  rate(
    'io_read_bytes_normal',
    'B/s',
    'io_reset',
    'pg_stat_io.read_bytes, context normal',
    'bytes read through shared buffers',
  ),
  rate(
    'io_read_bytes_bulkread',
    'B/s',
    'io_reset',
    'pg_stat_io.read_bytes, context bulkread',
    'bytes read by large scans',
  ),
  rate(
    'io_read_bytes_vacuum',
    'B/s',
    'io_reset',
    'pg_stat_io.read_bytes, context vacuum',
    'bytes read by VACUUM',
  ),
  rate(
    'io_read_bytes_bulkwrite',
    'B/s',
    'io_reset',
    'pg_stat_io.read_bytes, context bulkwrite',
    'bytes read by bulk writes',
  ),
  rate(
    'io_write_bytes_client',
    'B/s',
    'io_reset',
    'pg_stat_io.write_bytes, client backend',
    'bytes written by client backends',
  ),
  rate(
    'io_write_bytes_checkpointer',
    'B/s',
    'io_reset',
    'pg_stat_io.write_bytes, checkpointer',
    'bytes written by the checkpointer',
  ),
  rate(
    'io_write_bytes_background_writer',
    'B/s',
    'io_reset',
    'pg_stat_io.write_bytes, background writer',
    'bytes written by the background writer',
  ),
  rate(
    'io_write_bytes_other',
    'B/s',
    'io_reset',
    'pg_stat_io.write_bytes, other backends',
    'bytes written by all other processes',
  ),
  rate(
    'io_wal_write_bytes',
    'B/s',
    'io_reset',
    'pg_stat_io.write_bytes, object wal',
    'WAL bytes handed to the kernel per second',
  ),
  rate('io_wal_fsyncs', '1/s', 'io_reset', 'pg_stat_io.fsyncs, object wal', 'WAL fsyncs per second'),
  gauge('replication_standbys', '1', 'pg_stat_replication', 'standbys streaming from this instance'),
  gauge('replication_lag_bytes', 'B', 'pg_stat_replication.replay_lsn', 'largest replay lag of the standbys'),
  gauge('replication_lag', 's', 'pg_stat_replication.replay_lag', 'largest replay lag of the standbys'),
  gauge(
    'replay_delay',
    's',
    'pg_last_xact_replay_timestamp()',
    'on a standby: age of the last replayed transaction',
  ),
  gauge(
    'disk_size',
    'B',
    'statfs of the data directory',
    'size of the file system that holds the data directory',
  ),
  gauge('disk_free', 'B', 'statfs of the data directory', 'free space of that file system'),
  gauge('database_size', 'B', 'pg_database_size()', 'size of all databases (once a minute)'),
  gauge('wal_size', 'B', 'pg_ls_waldir()', 'size of the WAL directory (every 10 s)'),
  gauge('process_cpu', 'cores', '/proc/PID/stat of all processes', 'processor time used, in cores', {
    name: 'process_cpu_time',
    reset: null,
  }),
  gauge(
    'process_memory',
    'B',
    '/proc/PID of all processes',
    'private memory of all processes plus shared memory once',
  ),
  rate(
    'process_read_bytes',
    'B/s',
    null,
    '/proc/PID/io of all processes',
    'bytes read from storage by the processes',
  ),
  rate(
    'process_write_bytes',
    'B/s',
    null,
    '/proc/PID/io of all processes',
    'bytes sent to storage by the processes',
  ),
  gauge('processes', '1', '/proc', 'processes of the instance'),
  gauge('sample_time', 'ms', 'agent', 'how long taking this sample took'),
  rate(
    'wal_fpi_omitted_bytes',
    'B/s',
    'wal_reset',
    'polar_stat_wal.wal_fpi_omitted_bytes',
    'bytes of full-page images that the WAL did without per second, because full-page writes are off (before compression)',
  ),
  rate(
    'cpu_throttled',
    'cores',
    null,
    'cpu.stat of its cgroup',
    'processor time per second that the limit kept its processes from using',
  ),
  gauge('cpu_limit', 'cores', 'the limit of its cgroup', 'processor time that it may use'),
  gauge(
    'memory_held',
    'B',
    'memory.stat of its cgroup',
    'private and shared memory of all processes, which the kernel cannot reclaim',
  ),
  gauge('memory_limit', 'B', 'the limit of its cgroup', 'memory that it may use'),
  rate(
    'data_device_reads',
    '1/s',
    null,
    'I/O counters of its cgroup',
    'reads of the data device per second by the processes that are limited',
  ),
  rate(
    'data_device_writes',
    '1/s',
    null,
    'I/O counters of its cgroup',
    'writes to the data device per second by the processes that are limited',
  ),
  gauge('data_device_read_limit', '1/s', 'the limit of its cgroup', 'reads of the data device it may do'),
  gauge('data_device_write_limit', '1/s', 'the limit of its cgroup', 'writes to the data device it may do'),
  rate(
    'io_stall',
    'ratio',
    null,
    'io.pressure of its cgroup',
    'share of time in which some session waited for storage',
  ),
  gauge(
    'write_back_waiting',
    'B',
    'memory.stat of its cgroup',
    'written pages of files that wait until the kernel sends them to storage',
  ),
  rate(
    'memory_stall',
    'ratio',
    null,
    'memory.pressure of its cgroup',
    'share of time in which some session waited until the kernel had taken memory back',
  ),
  gauge(
    'memory_high_limit',
    'B',
    'the limit of its cgroup',
    'memory from which on the kernel takes it back and slows the instance down',
  ),
  rate(
    'data_device_read_bytes',
    'B/s',
    null,
    'I/O counters of its cgroup',
    'bytes read from the data device per second by the processes that are limited',
  ),
  rate(
    'data_device_write_bytes',
    'B/s',
    null,
    'I/O counters of its cgroup',
    'bytes written to the data device per second by the processes that are limited',
  ),
  gauge(
    'data_device_read_bytes_limit',
    'B/s',
    'the limit of its cgroup',
    'bytes that it may read from the data device',
  ),
  gauge(
    'data_device_write_bytes_limit',
    'B/s',
    'the limit of its cgroup',
    'bytes that it may write to the data device',
  ),
  rate(
    'wal_device_reads',
    '1/s',
    null,
    'I/O counters of its cgroup',
    'reads of the WAL device per second by the processes that are limited, where WAL lies on a device of its own',
  ),
  rate(
    'wal_device_writes',
    '1/s',
    null,
    'I/O counters of its cgroup',
    'writes to the WAL device per second by the processes that are limited, where WAL lies on a device of its own',
  ),
  gauge('wal_device_read_limit', '1/s', 'the limit of its cgroup', 'reads of the WAL device it may do'),
  gauge('wal_device_write_limit', '1/s', 'the limit of its cgroup', 'writes to the WAL device it may do'),
  rate(
    'wal_device_read_bytes',
    'B/s',
    null,
    'I/O counters of its cgroup',
    'bytes read from the WAL device per second by the processes that are limited, where WAL lies on a device of its own',
  ),
  rate(
    'wal_device_write_bytes',
    'B/s',
    null,
    'I/O counters of its cgroup',
    'bytes written to the WAL device per second by the processes that are limited, where WAL lies on a device of its own',
  ),
  gauge(
    'wal_device_read_bytes_limit',
    'B/s',
    'the limit of its cgroup',
    'bytes that it may read from the WAL device',
  ),
  gauge(
    'wal_device_write_bytes_limit',
    'B/s',
    'the limit of its cgroup',
    'bytes that it may write to the WAL device',
  ),
  gauge(
    'sessions_shared',
    '1',
    'polar_stat_dispatcher, without n_dedicated',
    'sessions of Shared Server that any worker of their pool can serve',
  ),
  gauge(
    'sessions_dedicated',
    '1',
    'polar_stat_dispatcher.n_dedicated',
    'sessions of Shared Server that are pinned to their worker',
  ),
  gauge(
    'sessions_native',
    '1',
    'polar_stat_dispatcher.n_native, without the agent’s own',
    'sessions with a backend of their own beside those of Shared Server',
  ),
  gauge(
    'sessions_parked',
    '1',
    'polar_stat_dispatcher.n_parked',
    'sessions without a worker whose client is silent',
  ),
  gauge(
    'sessions_waiting',
    '1',
    'polar_stat_dispatcher.n_waiting',
    'sessions whose client has spoken and that wait for a worker',
  ),
  gauge('workers', '1', 'polar_stat_dispatcher.n_backends', 'workers of all pools'),
  gauge('workers_free', '1', 'polar_stat_dispatcher.n_idle_backends', 'workers that serve no session'),
  rate(
    'shared_transactions',
    '1/s',
    'dispatcher_reset',
    'polar_stat_dispatcher.transactions',
    'transactions of sessions of Shared Server per second',
  ),
  rate(
    'session_wait_timeouts',
    '1/s',
    'dispatcher_reset',
    'polar_stat_dispatcher.timeouts',
    'sessions ended per second because they had waited too long for a worker',
  ),
  gauge(
    'session_wait_p50',
    'ms',
    'polar_stat_dispatcher.wait_histogram between two samples',
    'wait for a worker that half of all waits did not exceed',
  ),
  gauge(
    'session_wait_p99',
    'ms',
    'polar_stat_dispatcher.wait_histogram between two samples',
    'wait for a worker that 99 % of all waits did not exceed',
  ),
] as const satisfies readonly MetricDefinition[]

export type MetricName = (typeof metrics)[number]['name']

type Counted = Extract<(typeof metrics)[number], { counter: { name: string } }>
export type CounterName = Counted['counter']['name']

const isCounted = (metric: (typeof metrics)[number]): metric is Counted =>
  'counter' in metric && metric.counter !== undefined

/** Every counter that metrics are computed from. */
export const counters: readonly { name: CounterName; reset: CounterReset | null }[] = metrics
  .filter(isCounted)
  .map((metric) => metric.counter)

/** Metrics that are the growth of the counter of their name. */
export const countedRates: readonly (MetricName & CounterName)[] = metrics
  .filter(isCounted)
  .filter((metric) => metric.name === metric.counter.name)
  .map((metric) => metric.name as MetricName & CounterName)

const position = new Map<string, number>(metrics.map((m, i) => [m.name, i]))

/** Position of a metric in a stored array. */
export function metricPosition(name: MetricName): number {
  return position.get(name) as number
}

export function metricDefinition(name: MetricName): MetricDefinition {
  return metrics[metricPosition(name)] as MetricDefinition
}
