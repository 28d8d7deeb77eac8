import type { Instance } from '../engine/instance'
import type { MetricFamily } from './open-metrics'
import databaseStatisticsSql from './sql/database-statistics.sql'
import serverStatisticsSql from './sql/server-statistics.sql'

/** A scrape that lands on a busy instance goes without its counters rather than wait. */
const ASK_MS = 1_500

export type AgentHealth = {
  startedAt: number
  version: string
  missed: number
  taken: number
  tasksRunning: number
}

/** All families: PostgreSQL's under postgres_exporter's names, the agent's own as floe_agent_*. Label `instance` is the name. */
export async function collectMetrics(
  instances: readonly Instance[],
  health: AgentHealth,
): Promise<MetricFamily[]> {
  const families = new Map<string, MetricFamily>()
  const add = (
    name: string,
    type: MetricFamily['type'],
    help: string,
    labels: Record<string, string>,
    value: unknown,
    unit?: string,
  ) => {
    if (typeof value !== 'number') return
    const family = families.get(name) ?? { name, type, help, unit, points: [] }
    family.points.push({ labels, value })
    families.set(name, family)
  }
  await Promise.all(
    instances.map(async (i) => {
      const labels = { instance: i.registered.name }
      add('pg_up', 'gauge', 'whether the instance answers SQL', labels, i.state === 'running' ? 1 : 0)
      const [databases, server] = await Promise.all([
        ask(i, databaseStatisticsSql),
        ask(i, serverStatisticsSql),
      ])
      for (const row of databases) {
        const { datname, datid, flushed: _, numbackends, ...counters } = row
        const of = { ...labels, datid: String(datid), datname: String(datname) }
        add('pg_stat_database_numbackends', 'gauge', 'sessions connected to the database', of, numbackends)
        for (const [name, value] of Object.entries(counters))
          add(`pg_stat_database_${name}`, 'counter', `pg_stat_database.${name}`, of, value)
      }
      for (const [name, value] of Object.entries(server[0] ?? {}))
        add(name, 'counter', describe(name), labels, value)
      addGauges(i, labels, add)
    }),
  )
  add('floe_agent', 'info', 'version of the agent', { version: health.version }, 1)
  add(
    'floe_agent_start_time_seconds',
    'gauge',
    'when the agent started',
    {},
    health.startedAt / 1_000,
    'seconds',
  )
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
  for (const [what, help, bytes] of [
    ['resident_memory', 'memory of the agent', rss],
    ['heap_used', 'of the JavaScript heap: what objects take, with those not yet collected', heapUsed],
    ['heap_committed', 'of the JavaScript heap: what it has of the system', heapTotal],
    ['external_memory', 'buffers and strings beside the JavaScript heap', external],
  ] as const)
    add(`floe_agent_${what}_bytes`, 'gauge', help, {}, bytes, 'bytes')
  const cpu = process.cpuUsage()
  const cpuHelp = 'processor time the agent has used'
  add('floe_agent_cpu_seconds', 'counter', cpuHelp, {}, (cpu.user + cpu.system) / 1e6, 'seconds')
  add('floe_agent_samples_taken', 'counter', 'samples taken of all instances', {}, health.taken)
  add('floe_agent_samples_missed', 'counter', 'ticks that yielded no sample', {}, health.missed)
  add('floe_agent_tasks_running', 'gauge', 'tasks running now', {}, health.tasksRunning)
  add('floe_agent_instances', 'gauge', 'instances of this host', {}, instances.length)
  return [...families.values()]
}

type Add = (
  name: string,
  type: MetricFamily['type'],
  help: string,
  labels: Record<string, string>,
  value: unknown,
  unit?: string,
) => void

/** Gauges of the newest sample. */
function addGauges(i: Instance, labels: Record<string, string>, add: Add): void {
  const newest = i.sampler.ring.newestSeq
  const values = newest === null ? undefined : i.sampler.ring.read(newest - 1, 1)[0]?.values
  if (!values) return
  for (const state of ['active', 'idle', 'idle_in_transaction'] as const)
    add(
      'pg_stat_activity_count',
      'gauge',
      'client connections by state',
      { ...labels, state: state.replaceAll('_', ' ') },
      values[`connections_${state}`],
    )
  add(
    'pg_stat_activity_max_tx_duration',
    'gauge',
    'age of the oldest open transaction',
    labels,
    values.oldest_transaction,
  )
  add(
    'pg_settings_max_connections',
    'gauge',
    'most client connections allowed',
    labels,
    values.connections_max,
  )
  add(
    'pg_replication_lag_seconds',
    'gauge',
    'on a standby: age of the last replayed transaction',
    labels,
    values.replay_delay,
    'seconds',
  )
  add('pg_database_size_bytes', 'gauge', 'size of all databases', labels, values.database_size, 'bytes')
  add('pg_wal_size_bytes', 'gauge', 'size of the WAL directory', labels, values.wal_size, 'bytes')
}

function describe(name: string): string {
  return name.replace(/^(pg_stat_[a-z]+)_(.*)$/, '$1.$2')
}

async function ask(i: Instance, sql: string): Promise<Record<string, unknown>[]> {
  const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error('late')), ASK_MS).unref())
  try {
    return (await Promise.race([i.sampler.ask(sql), late])) ?? []
  } catch {
    return []
  }
}
