import { z } from 'zod'
import { formatBytes } from './format'
import type { InstanceLimits } from './instance-limits'

/** What an instance is mainly for. */
export const ProfileName = z.enum(['oltp-nvme', 'bulk-load', 'analytics', 'tiny'])
export type ProfileName = z.infer<typeof ProfileName>

export const profileWords: Record<ProfileName, { title: string; about: string }> = {
  'oltp-nvme': {
    title: 'OLTP on NVMe',
    about: 'Many short transactions on a fast disk: even latency before everything else.',
  },
  'bulk-load': {
    title: 'Bulk load',
    about: 'Loading and index builds: long checkpoints, large writes. For the time of a load.',
  },
  analytics: {
    title: 'Analytics',
    about: 'Few long queries: memory and processors for each of them.',
  },
  tiny: {
    title: 'Tiny',
    about: 'One of many on a host, rarely used: as little memory and WAL as is sensible.',
  },
}

/** A ceiling as a sentence; null where there is none. */
export function ceilingWords({ memoryBytes, cpus }: ProfileCeiling): string | null {
  const parts = [
    ...(memoryBytes === null ? [] : [`${formatBytes(memoryBytes)} of memory`]),
    ...(cpus === null ? [] : [`${cpus} ${cpus === 1 ? 'core' : 'cores'}`]),
  ]
  return parts.length === 0 ? null : `Its limits let it have ${parts.join(' and ')}.`
}

/** The part of a host that is meant for one instance. */
export const HostShare = z.number().min(0.01).max(1)

export type ProfileHost = { memoryBytes: number; cpus: number }

/** What limits let an instance have, whatever its host has; null: as much as there is. */
export const ProfileCeiling = z.object({ memoryBytes: z.number().nullable(), cpus: z.number().nullable() })
export type ProfileCeiling = z.infer<typeof ProfileCeiling>

/** The lowest of the limits of all that will have the same settings. */
export function profileCeiling(all: readonly InstanceLimits[]): ProfileCeiling {
  const least = (values: readonly (number | null)[]) => {
    const set = values.flatMap((value) => value ?? [])
    return set.length === 0 ? null : Math.min(...set)
  }
  return {
    memoryBytes: least(all.flatMap(({ memoryHigh, memoryMax }) => [memoryHigh, memoryMax])),
    cpus: least(all.map(({ cpu }) => cpu)),
  }
}

/** One setting of a profile. */
export const ProfileLine = z.object({ name: z.string(), value: z.string(), reason: z.string() })
export type ProfileLine = z.infer<typeof ProfileLine>

const MB = 1024 ** 2
const megabytes = (bytes: number, atLeastMB: number, atMostMB: number): string =>
  `${Math.round(Math.min(atMostMB, Math.max(atLeastMB, bytes / MB)))}MB`
const percent = (part: number) => `${Math.round(part * 100)} %`

/**
 * The settings of a profile for an instance that has `share` of a host, or what its limits let it have of that, each with its
 * reason. They are ordinary settings that a person reviews and applies. None gives up durability, none needs another member
 * of the cluster to follow (max_connections and the like), and where something depends on what users do, PostgreSQL's own
 * default stays.
 */
export function profileSettings(
  profile: ProfileName,
  host: ProfileHost,
  share: number,
  ceiling: ProfileCeiling = { memoryBytes: null, cpus: null },
): ProfileLine[] {
  const shared = host.memoryBytes * share
  const limit = ceiling.memoryBytes !== null && ceiling.memoryBytes < shared ? ceiling.memoryBytes : null
  const memory = limit ?? shared
  const cpus = Math.max(1, Math.round(Math.min(host.cpus * share, ceiling.cpus ?? host.cpus)))
  const part =
    limit !== null
      ? `its memory limit of ${formatBytes(limit)}`
      : share === 1
        ? 'the host’s memory'
        : `its ${percent(share)} of the host’s memory`
  const setting = (name: string, value: string | number, reason: string): ProfileLine => ({
    name,
    value: String(value),
    reason,
  })
  const cache = (of: number, atLeastMB: number, atMostMB = 65_536) =>
    setting(
      'shared_buffers',
      // the kernel would kill what does not fit below a limit, however small that is
      megabytes(memory * of, limit === null ? atLeastMB : Math.min(atLeastMB, limit / MB / 2), atMostMB),
      `${percent(of)} of ${part}; the rest caches files and is needed by sessions.`,
    )
  const planned = (of: number) =>
    setting(
      'effective_cache_size',
      megabytes(memory * of, 64, 1_048_576),
      `What the planner may expect to be cached, here and by the kernel: ${percent(of)} of ${part}. Takes no memory.`,
    )
  const fastDisk = [
    setting('random_page_cost', '1.1', 'On NVMe a random read costs hardly more than the next one.'),
    setting(
      'effective_io_concurrency',
      200,
      'NVMe answers many requests at a time; each waits alone otherwise.',
    ),
  ]
  switch (profile) {
    case 'oltp-nvme':
      return [
        cache(0.25, 128),
        planned(0.7),
        setting(
          'work_mem',
          megabytes(memory / 800, 4, 64),
          'Per sort or hash of each session: 200 sessions with two each take half of the memory at most.',
        ),
        setting(
          'maintenance_work_mem',
          megabytes(memory * 0.05, 64, 2_048),
          `VACUUM and index builds, three at a time: 5 % of ${part}.`,
        ),
        ...fastDisk,
        setting(
          'checkpoint_timeout',
          '15min',
          'Fewer checkpoints write fewer full-page images; a start after a crash reads up to so much WAL.',
        ),
        setting(
          'checkpoint_completion_target',
          '0.9',
          'Writes are spread over the interval instead of coming in a burst.',
        ),
        setting(
          'max_wal_size',
          megabytes(memory * 0.5, 1_024, 16_384),
          'Checkpoints come by time, not by the amount of WAL; takes as much disk space.',
        ),
        setting(
          'max_parallel_workers_per_gather',
          cpus >= 4 ? 2 : 0,
          'Short queries gain nothing from workers, and the other sessions need the processors.',
        ),
        setting(
          'autovacuum_vacuum_cost_limit',
          2_000,
          'On NVMe VACUUM may work ten times as fast as the default lets it, so that tables do not bloat.',
        ),
        setting(
          'polar_bulk_write_size',
          '128kB',
          'Checkpoints and VACUUM write consecutive pages with one request.',
        ),
      ]
    case 'bulk-load':
      return [
        cache(0.25, 128),
        setting(
          'maintenance_work_mem',
          megabytes(memory * 0.15, 128, 8_192),
          `Index builds sort in memory: 15 % of ${part}.`,
        ),
        setting(
          'max_parallel_maintenance_workers',
          Math.max(1, Math.floor(cpus / 2)),
          `Index builds use half of ${cpus} ${cpus === 1 ? 'processor' : 'processors'}.`,
        ),
        setting('checkpoint_timeout', '30min', 'Loaded pages are written once, not at every checkpoint.'),
        setting('checkpoint_completion_target', '0.9', 'Writes are spread over the interval.'),
        setting(
          'max_wal_size',
          megabytes(memory * 2, 4_096, 65_536),
          'A load must not force checkpoints; takes as much disk space.',
        ),
        setting('polar_bulk_extend_size', '4MB', 'A table grows by large pieces, in fewer requests.'),
        setting('polar_index_create_bulk_extend_size', '4MB', 'So does an index that is built.'),
        setting(
          'polar_bulk_write_size',
          '128kB',
          'COPY and checkpoints write consecutive pages with one request.',
        ),
        ...fastDisk,
      ]
    case 'analytics':
      return [
        cache(0.25, 128),
        planned(0.7),
        setting(
          'work_mem',
          megabytes(memory / 64, 16, 2_048),
          'Per sort or hash: a few long queries with several each, in half of the memory.',
        ),
        setting('maintenance_work_mem', megabytes(memory * 0.1, 64, 4_096), `10 % of ${part}.`),
        setting(
          'max_parallel_workers_per_gather',
          Math.max(1, Math.floor(cpus / 2)),
          `One query uses up to half of ${cpus} ${cpus === 1 ? 'processor' : 'processors'}.`,
        ),
        ...fastDisk,
        setting('polar_bulk_read_size', '128kB', 'Sequential scans read large pieces, in fewer requests.'),
        setting('checkpoint_timeout', '30min', 'Little is written; a checkpoint has time.'),
        setting(
          'default_statistics_target',
          500,
          'Better plans for queries over many rows; ANALYZE reads more for it.',
        ),
      ]
    case 'tiny':
      return [
        cache(0.25, 32, 128),
        planned(0.5),
        setting('work_mem', '2MB', 'There is little memory, and queries are small.'),
        setting('maintenance_work_mem', '32MB', 'There is little memory; tables are small.'),
        setting(
          'max_wal_size',
          '256MB',
          'WAL takes little of the disk; checkpoints come earlier under load.',
        ),
        setting('max_parallel_workers_per_gather', 0, 'Each worker is a process with memory of its own.'),
        setting('autovacuum_naptime', '5min', 'Looking for work wakes a process for each database.'),
      ]
  }
}

/** The share that is proposed: the host divided by the instances on it. */
export const proposedShare = (instancesOnHost: number): number =>
  Math.max(0.01, Math.floor(100 / Math.max(1, instancesOnHost)) / 100)
