import { type MetricName, type MetricUnit, metricDefinition } from '@floe/telemetry'
import type { ChartSeries, SeriesColor } from '@floe/ui'
import type { Derive } from './timeline'

export type ChartDefinition = {
  id: string
  title: string
  description: string
  unit: MetricUnit
  stacked?: boolean
  /** Draw checkpoints behind it. */
  checkpoints?: boolean
  leastTop?: number
  /** One value far above all others does not set the scale: a mean of very few transactions can be anything. */
  clipsExceptions?: boolean
  series: readonly ChartSeries[]
  /** Metrics that the CSV of this chart holds. */
  metrics: readonly MetricName[]
}

function of(
  name: MetricName,
  label: string,
  color: SeriesColor,
  more: Partial<ChartSeries> = {},
): ChartSeries {
  const { source, help } = metricDefinition(name)
  return { key: name, label, color, source, help, ...more }
}

/** Series computed from several metrics; null as soon as one of them is not known. */
export const derive: Derive = (values) => {
  const { wal_bytes: wal, wal_fpi_bytes: images } = values
  return {
    wal_rest_bytes: typeof wal === 'number' && typeof images === 'number' ? Math.max(0, wal - images) : null,
    // where the share of images is not known, all of the WAL is drawn as what it is: not split
    wal_unsplit_bytes: typeof wal === 'number' && typeof images !== 'number' ? wal : null,
  }
}

const rest = 'pg_stat_wal.wal_bytes - wal_fpi_bytes'

/** The charts of an instance's overview, in the order shown. */
export const overviewCharts: readonly ChartDefinition[] = [
  {
    id: 'tps',
    title: 'TPS',
    description: 'Transactions ended per second, commits and rollbacks together, with checkpoints behind.',
    unit: '1/s',
    checkpoints: true,
    leastTop: 10,
    series: [of('tps', 'transactions', 1), of('xact_rollback', 'of these rolled back', 5)],
    metrics: ['tps', 'xact_commit', 'xact_rollback'],
  },
  {
    id: 'transaction-time',
    title: 'Mean transaction time',
    description: 'Mean time a transaction spent executing statements, with checkpoints behind.',
    unit: 'ms',
    checkpoints: true,
    clipsExceptions: true,
    series: [of('xact_active_time', 'mean time', 4)],
    metrics: ['xact_active_time'],
  },
  {
    id: 'wal',
    title: 'WAL',
    description:
      'WAL written per second, split into full-page images and the rest, with checkpoints behind; dashed, the images that are left out while full-page writes are off.',
    unit: 'B/s',
    stacked: true,
    checkpoints: true,
    leastTop: 8_192,
    series: [
      of('wal_fpi_bytes', 'full-page images', 2),
      {
        key: 'wal_rest_bytes',
        label: 'the rest',
        color: 1,
        source: rest,
        help: 'WAL without full-page images',
      },
      of('wal_fpi_omitted_bytes', 'images saved', 3, { kind: 'line', dashed: true }),
    ],
    metrics: ['wal_bytes', 'wal_fpi_bytes', 'wal_fpi_omitted_bytes', 'wal_fpi', 'wal_records'],
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
    metrics: ['io_read_bytes', 'io_write_bytes', 'io_extend_bytes', 'io_reads', 'io_writes', 'io_extends'],
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
    metrics: [
      'io_read_bytes_normal',
      'io_read_bytes_bulkread',
      'io_read_bytes_vacuum',
      'io_read_bytes_bulkwrite',
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
    metrics: [
      'io_write_bytes_client',
      'io_write_bytes_checkpointer',
      'io_write_bytes_background_writer',
      'io_write_bytes_other',
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
    metrics: [
      'connections_total',
      'connections_active',
      'connections_idle',
      'connections_idle_in_transaction',
      'connections_waiting',
    ],
  },
  {
    id: 'cache-hit',
    title: 'Cache hit',
    description: 'Blocks found in shared buffers, share of all that were asked for.',
    unit: 'ratio',
    series: [of('cache_hit_ratio', 'found in shared buffers', 3)],
    metrics: ['cache_hit_ratio', 'blks_hit', 'blks_read'],
  },
  {
    id: 'processor',
    title: 'Processor',
    description: 'Processor time used by all processes of the instance.',
    unit: 'cores',
    leastTop: 0.1,
    series: [of('process_cpu', 'in use', 1, { kind: 'area' })],
    metrics: ['process_cpu'],
  },
  {
    id: 'memory',
    title: 'Memory',
    description: 'Private memory of all processes of the instance plus shared memory once.',
    unit: 'B',
    leastTop: 16 * 1024 ** 2,
    series: [of('process_memory', 'in use', 4, { kind: 'area' })],
    metrics: ['process_memory', 'processes'],
  },
]

/** Every metric the overview reads: what is drawn, what is exported and what stands in its readings. */
export const overviewMetrics: readonly MetricName[] = [
  ...new Set<MetricName>([
    ...overviewCharts.flatMap((c) => c.metrics),
    'connections_max',
    'checkpoint_running',
    'checkpoint_running_time',
    'checkpoint_running_buffers',
    'locks_waiting',
    'oldest_transaction',
    'disk_size',
    'disk_free',
    'database_size',
    'wal_size',
  ]),
]

/** Keys of the rows that charts draw from. */
export const overviewKeys: readonly string[] = [
  ...new Set([...overviewMetrics, 'wal_rest_bytes', 'wal_unsplit_bytes']),
]

/**
 * The series of a chart that have something to show. WAL of an instance that does not tell images apart is drawn as one,
 * and what full-page writes save only where they save anything.
 */
export function seriesShown(
  chart: ChartDefinition,
  known: { split: boolean; saved: boolean },
): readonly ChartSeries[] {
  if (chart.id !== 'wal') return chart.series
  const series = chart.series.filter((s) => s.key !== 'wal_fpi_omitted_bytes' || known.saved)
  if (known.split) return series
  return series
    .filter((s) => s.key !== 'wal_fpi_bytes')
    .map((s) => (s.key === 'wal_rest_bytes' ? { ...s, key: 'wal_unsplit_bytes', label: 'not split' } : s))
}
