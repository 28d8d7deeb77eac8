import { type MetricName, type MetricUnit, type MetricValues, metricDefinition } from '@floe/telemetry'
import type { ChartSeries, SeriesColor } from '@floe/ui'
import { readingMetrics } from './reading-definitions'
import { maximumKey, type RowShape, type TimelineRow } from './timeline'

/** One line or area of a chart, with everything that is special about it. */
export type ChartLine = ChartSeries & {
  /** The metrics it is drawn from. */
  reads: readonly MetricName[]
  /** Its value where it is no metric of the catalogue; null as soon as the value is not known. */
  compute?: (values: MetricValues) => number | null
  /** Whether it is drawn with these rows; always unless it is said. */
  shownWhere?: (rows: readonly TimelineRow[]) => boolean
}

export type ChartDefinition = {
  id: string
  title: string
  description: string
  unit: MetricUnit
  stacked?: boolean
  /** Draw checkpoints behind it. */
  checkpoints?: boolean
  /** Mark stalls on it. */
  stalls?: boolean
  leastTop?: number
  /** One value far above all others does not set the scale: a mean of very few transactions can be anything. */
  clipsExceptions?: boolean
  series: readonly ChartLine[]
  /** Whether it is there at all with these rows; always unless it is said. */
  onlyWhere?: (rows: readonly TimelineRow[]) => boolean
  /** Metrics that the chart's CSV holds besides those that are drawn. */
  alsoExported?: readonly MetricName[]
}

/** A line of one metric; `maximum`: where a point averages, it is shaded up to the largest value. */
function of(
  name: MetricName,
  label: string,
  color: SeriesColor,
  { maximum, ...more }: Pick<ChartLine, 'kind' | 'dashed' | 'shownWhere'> & { maximum?: true } = {},
): ChartLine {
  const { source, help } = metricDefinition(name)
  return {
    key: name,
    label,
    color,
    source,
    help,
    reads: [name],
    ...(maximum && { maximumKey: maximumKey(name) }),
    ...more,
  }
}

const known =
  (...names: MetricName[]) =>
  (rows: readonly TimelineRow[]) =>
    rows.some((row) => names.some((name) => typeof row[name] === 'number'))

const everAbove0 = (name: MetricName) => (rows: readonly TimelineRow[]) =>
  rows.some((row) => (row[name] ?? 0) > 0)

/** A line that is there where the limit is set. */
const limitOf = (name: MetricName, label: string, color: SeriesColor): ChartLine =>
  of(name, label, color, { dashed: true, shownWhere: known(name) })

type DeviceWords = Pick<ChartDefinition, 'id' | 'title' | 'description' | 'onlyWhere'>

const requestsOf = (device: 'data' | 'wal', words: DeviceWords): ChartDefinition => ({
  ...words,
  unit: '1/s',
  leastTop: 10,
  series: [
    of(`${device}_device_reads`, 'reads', 1),
    of(`${device}_device_writes`, 'writes', 2),
    limitOf(`${device}_device_read_limit`, 'limit of reads', 4),
    limitOf(`${device}_device_write_limit`, 'limit of writes', 5),
  ],
  alsoExported: [`${device}_device_read_bytes`, `${device}_device_write_bytes`],
})

/** Only where bytes are limited: what was read and written is in the CSV of requests, too. */
const bytesOf = (device: 'data' | 'wal', words: DeviceWords): ChartDefinition => ({
  ...words,
  unit: 'B/s',
  leastTop: 8_192,
  onlyWhere: known(`${device}_device_read_bytes_limit`, `${device}_device_write_bytes_limit`),
  series: [
    of(`${device}_device_read_bytes`, 'read', 1),
    of(`${device}_device_write_bytes`, 'written', 2),
    limitOf(`${device}_device_read_bytes_limit`, 'limit of reads', 4),
    limitOf(`${device}_device_write_bytes_limit`, 'limit of writes', 5),
  ],
})

/** The charts of an instance's overview, in the order shown. */
export const overviewCharts: readonly ChartDefinition[] = [
  {
    id: 'tps',
    title: 'TPS',
    description:
      'Transactions ended per second, commits and rollbacks together, with checkpoints and stalls behind.',
    unit: '1/s',
    checkpoints: true,
    stalls: true,
    leastTop: 10,
    series: [of('tps', 'transactions', 1, { maximum: true }), of('xact_rollback', 'of these rolled back', 5)],
    alsoExported: ['xact_commit'],
  },
  {
    id: 'transaction-time',
    title: 'Mean transaction time',
    description: 'Mean time a transaction spent executing statements, with checkpoints behind.',
    unit: 'ms',
    checkpoints: true,
    clipsExceptions: true,
    series: [of('xact_active_time', 'mean time', 4)],
  },
  {
    id: 'wal',
    title: 'WAL',
    description:
      'WAL written per second, split into full-page images and the rest, with checkpoints behind. Dashed: full-page images omitted while full-page writes are off.',
    unit: 'B/s',
    stacked: true,
    checkpoints: true,
    leastTop: 8_192,
    series: [
      of('wal_fpi_bytes', 'full-page images', 2, { shownWhere: known('wal_fpi_bytes') }),
      {
        key: 'wal_rest_bytes',
        label: 'the rest',
        color: 1,
        source: 'pg_stat_wal.wal_bytes - wal_fpi_bytes',
        help: 'WAL without full-page images',
        reads: ['wal_bytes', 'wal_fpi_bytes'],
        compute: ({ wal_bytes: wal, wal_fpi_bytes: images }) =>
          typeof wal === 'number' && typeof images === 'number' ? Math.max(0, wal - images) : null,
        shownWhere: known('wal_fpi_bytes'),
      },
      {
        key: 'wal_unsplit_bytes',
        label: 'not split',
        color: 1,
        source: 'pg_stat_wal.wal_bytes',
        help: 'WAL of which the share of full-page images is not known',
        reads: ['wal_bytes', 'wal_fpi_bytes'],
        compute: ({ wal_bytes: wal, wal_fpi_bytes: images }) =>
          typeof wal === 'number' && typeof images !== 'number' ? wal : null,
        shownWhere: (rows) => !known('wal_fpi_bytes')(rows),
      },
      of('wal_fpi_omitted_bytes', 'full-page images omitted', 3, {
        kind: 'line',
        dashed: true,
        shownWhere: (rows) => rows.some((row) => (row.wal_fpi_omitted_bytes ?? 0) > 0),
      }),
    ],
    alsoExported: ['wal_fpi', 'wal_records'],
  },
  {
    id: 'io',
    title: 'I/O',
    description: 'Relation bytes read, written and added by growing, per second, as PostgreSQL counts them.',
    unit: 'B/s',
    checkpoints: true,
    leastTop: 8_192,
    series: [
      of('io_read_bytes', 'read', 1),
      of('io_write_bytes', 'write', 2),
      of('io_extend_bytes', 'extend', 3),
    ],
    alsoExported: ['io_reads', 'io_writes', 'io_extends'],
  },
  {
    id: 'reads',
    title: 'Reads by kind',
    description: 'Relation bytes read per second, by what they were read for.',
    unit: 'B/s',
    stacked: true,
    leastTop: 8_192,
    series: [
      of('io_read_bytes_normal', 'normal', 1),
      of('io_read_bytes_bulkread', 'large scans', 2),
      of('io_read_bytes_vacuum', 'VACUUM', 3),
      of('io_read_bytes_bulkwrite', 'bulk writes', 4),
    ],
  },
  {
    id: 'writes',
    title: 'Writes by process',
    description:
      'Relation bytes written per second, by the process that wrote them, with checkpoints behind.',
    unit: 'B/s',
    stacked: true,
    checkpoints: true,
    leastTop: 8_192,
    series: [
      of('io_write_bytes_client', 'client backends', 1),
      of('io_write_bytes_checkpointer', 'checkpointer', 2),
      of('io_write_bytes_background_writer', 'background writer', 3),
      of('io_write_bytes_other', 'others', 6),
    ],
  },
  {
    id: 'connections',
    title: 'Connections',
    description: 'Client connections by what they are doing; those that wait for a lock are drawn over them.',
    unit: '1',
    stacked: true,
    leastTop: 4,
    series: [
      of('connections_active', 'active', 1),
      of('connections_idle', 'idle', 6),
      of('connections_idle_in_transaction', 'idle in transaction', 2),
      of('connections_waiting', 'waiting for a lock', 5, { kind: 'line' }),
    ],
    alsoExported: ['connections_total'],
  },
  {
    id: 'cache-hit',
    title: 'Cache hit',
    description: 'Blocks found in shared buffers, as a share of all blocks requested.',
    unit: 'ratio',
    series: [of('cache_hit_ratio', 'found in shared buffers', 3)],
    alsoExported: ['blks_hit', 'blks_read'],
  },
  {
    id: 'processor',
    title: 'Processor',
    description: 'Processor time used by all processes of the instance, and its limit where one is set.',
    unit: 'cores',
    leastTop: 0.1,
    series: [
      of('process_cpu', 'in use', 1, { kind: 'area', maximum: true }),
      limitOf('cpu_limit', 'limit', 5),
      of('cpu_throttled', 'held back by the limit', 2, { shownWhere: everAbove0('cpu_throttled') }),
    ],
  },
  {
    id: 'memory',
    title: 'Memory',
    description: 'Private memory of all processes of the instance plus shared memory once.',
    unit: 'B',
    leastTop: 16 * 1024 ** 2,
    series: [
      of('process_memory', 'in use', 4, { kind: 'area' }),
      of('memory_held', 'not reclaimable', 2, {
        shownWhere: known('memory_limit', 'memory_high_limit'),
      }),
      limitOf('memory_limit', 'limit', 5),
      limitOf('memory_high_limit', 'high', 6),
      of('write_back_waiting', 'to be written back', 3, { shownWhere: known('data_device_write_limit') }),
    ],
    alsoExported: ['processes'],
  },
  requestsOf('data', {
    id: 'device',
    title: 'Data device',
    description:
      'Reads of and writes to the data device by the processes that limits of I/O hold for, and the limits where they are set.',
  }),
  bytesOf('data', {
    id: 'device-bytes',
    title: 'Data device, bytes',
    description:
      'Bytes read from and written to the data device by the processes that limits of I/O hold for, and the limits.',
  }),
  requestsOf('wal', {
    id: 'wal-device',
    title: 'WAL device',
    description:
      'Reads of and writes to the device of WAL by the processes that limits of I/O hold for, and the limits where they are set.',
    onlyWhere: known('wal_device_writes'),
  }),
  bytesOf('wal', {
    id: 'wal-device-bytes',
    title: 'WAL device, bytes',
    description:
      'Bytes read from and written to the device of WAL by the processes that limits of I/O hold for, and the limits.',
  }),
  {
    id: 'waits',
    title: 'Held up',
    description:
      'Share of time in which some session waited for storage, or for memory that the kernel had to reclaim first.',
    unit: 'ratio',
    onlyWhere: known('io_stall', 'memory_stall'),
    series: [of('io_stall', 'for storage', 1), of('memory_stall', 'for memory', 2)],
  },
]

/** The metrics that a chart draws, then those that only its CSV holds. */
export const metricsOf = (chart: ChartDefinition): MetricName[] => [
  ...new Set([...chart.series.flatMap((line) => line.reads), ...(chart.alsoExported ?? [])]),
]

/** The lines of a chart that have something to show. */
export const linesShown = (chart: ChartDefinition, rows: readonly TimelineRow[]): readonly ChartLine[] =>
  chart.series.filter((line) => line.shownWhere?.(rows) ?? true)

/** Those of some charts that have something to show. */
export const chartsShown = (
  rows: readonly TimelineRow[],
  charts: readonly ChartDefinition[] = overviewCharts,
): readonly ChartDefinition[] => charts.filter((chart) => chart.onlyWhere?.(rows) ?? true)

/** Every metric the overview reads: what is drawn, what is exported and what stands in its readings. */
export const overviewMetrics: readonly MetricName[] = [
  ...new Set<MetricName>([
    ...overviewCharts.flatMap(metricsOf),
    ...readingMetrics,
    'checkpoint_running',
    'checkpoint_running_time',
    'checkpoint_running_buffers',
    'oldest_transaction',
    'database_size',
    'wal_size',
  ]),
]

/** What rows are made of from which these charts draw: metrics, and the lines that are computed. */
function shapeOf(charts: readonly ChartDefinition[], metrics: readonly MetricName[]): RowShape {
  const lines = charts.flatMap((chart) => chart.series)
  const computed = lines.flatMap(({ key, compute }) => (compute ? [{ key, compute }] : []))
  return {
    metrics,
    maximumOf: lines.flatMap((line) => (line.maximumKey ? line.reads : [])),
    derive: (values) => Object.fromEntries(computed.map(({ key, compute }) => [key, compute(values)])),
  }
}

/** Of the overview. */
export const overviewShape: RowShape = shapeOf(overviewCharts, overviewMetrics)

/** The charts of an instance's connections: its sessions beside its transactions. */
export const connectionCharts: readonly ChartDefinition[] = [
  {
    id: 'shared-transactions',
    title: 'TPS',
    description:
      'Transactions ended per second, all of them and those of sessions that came through the shared port. PostgreSQL counts those that touch no table late, so that all of them may look fewer for a while.',
    unit: '1/s',
    leastTop: 10,
    series: [
      of('tps', 'all', 1, { maximum: true }),
      of('shared_transactions', 'through the shared port', 2, { shownWhere: known('shared_transactions') }),
    ],
  },
  {
    id: 'sessions',
    title: 'Sessions',
    description: 'Sessions by mode; those that wait for a worker, and the workers, are drawn over them.',
    unit: '1',
    stacked: true,
    leastTop: 4,
    onlyWhere: known('sessions_shared'),
    series: [
      of('sessions_shared', 'shared', 1),
      of('sessions_dedicated', 'dedicated', 2),
      of('sessions_native', 'native', 6),
      of('sessions_waiting', 'waiting for a worker', 5, { kind: 'line' }),
      of('workers', 'workers', 3, { kind: 'line', dashed: true }),
    ],
    alsoExported: ['sessions_parked', 'workers_free'],
  },
  {
    id: 'session-waits',
    title: 'Wait for a worker',
    description: 'How long sessions waited for a worker; unknown while no session was given one.',
    unit: 'ms',
    clipsExceptions: true,
    onlyWhere: known('session_wait_p99'),
    series: [of('session_wait_p50', 'p50', 1), of('session_wait_p99', 'p99', 5)],
    alsoExported: ['session_wait_timeouts'],
  },
]

/** Of the page Connections. */
export const connectionShape: RowShape = shapeOf(connectionCharts, [
  ...new Set(connectionCharts.flatMap(metricsOf)),
])
