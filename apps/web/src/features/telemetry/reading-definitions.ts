import type { MetricName } from '@floe/telemetry'

export type ReadingDefinition = {
  metric: MetricName
  label: string
  /** The most it can be, shown beside it. */
  of?: MetricName
  /** What it is a part of, with the word for that: shown as a share. */
  partOf?: { metric: MetricName; label: string }
}

/** The readings above the charts of an instance's overview, in the order shown. */
export const overviewReadings: readonly ReadingDefinition[] = [
  { metric: 'tps', label: 'TPS' },
  { metric: 'xact_active_time', label: 'Mean transaction' },
  { metric: 'wal_bytes', label: 'WAL' },
  { metric: 'wal_fpi_bytes', label: 'Full-page images', partOf: { metric: 'wal_bytes', label: 'WAL' } },
  { metric: 'io_read_bytes', label: 'Read' },
  { metric: 'io_write_bytes', label: 'Write' },
  { metric: 'cache_hit_ratio', label: 'Cache hit' },
  { metric: 'connections_total', label: 'Connections', of: 'connections_max' },
  { metric: 'process_cpu', label: 'Processor' },
  { metric: 'process_memory', label: 'Memory' },
  { metric: 'locks_waiting', label: 'Locks waiting' },
  { metric: 'disk_free', label: 'Disk free', of: 'disk_size' },
]

/** Every metric that a reading is made of. */
export const readingMetrics: readonly MetricName[] = overviewReadings.flatMap(({ metric, of, partOf }) => [
  metric,
  ...(of ? [of] : []),
  ...(partOf ? [partOf.metric] : []),
])
