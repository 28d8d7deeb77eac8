import { type DispatcherState, SharedServer, SharedServerSeen } from '@floe/domain'
import { readChild } from '@floe/host/process'
import { type AskRows, viewsOf } from '../sql/extension-views'
import countsSql from '../sql/shared-server-counts.sql'
import pinnedSql from '../sql/shared-server-pinned.sql'
import poolsSql from '../sql/shared-server-pools.sql'
import seenSql from '../sql/shared-server-seen.sql'

const EXTENSION = 'shared_server'

/** The instance says which process it is; one that is not the postmaster's child is not believed to be. */
function dispatcherState(pid: unknown, postmasterPid: number | null): DispatcherState {
  const stat = readChild(pid, postmasterPid)
  if (stat === null) return 'absent'
  return /^[Tt]$/.test(stat.state) ? 'stopped' : 'running'
}

function seenFromRow(row: Record<string, unknown> | undefined, postmasterPid: number | null) {
  if (!row) return null
  const port = row.port === 0 ? null : row.port
  const seen = SharedServerSeen.safeParse({
    port,
    enabled: row.enabled,
    sharesTls: row.shares_tls,
    dispatcher: port === null ? null : dispatcherState(row.dispatcher_pid, postmasterPid),
  })
  // views of a later version may answer otherwise: then it is unknown, not off
  return seen.success ? seen.data : null
}

/** Whether sessions of an instance share backends; null for an engine, or a database, without the views. */
export async function lookAtSharedServer(
  ask: AskRows,
  postmasterPid: number | null,
): Promise<SharedServerSeen | null> {
  const within = await viewsOf(ask, EXTENSION)
  return within ? seenFromRow((await ask(within(seenSql)))?.[0], postmasterPid) : null
}

/** `polar_ss_backend_max_count` as the engine reads it. */
function workersMax(count: unknown, connections: unknown): number {
  const max = Number(connections)
  const asked = Number(count)
  if (asked === 0 || asked === -1) return max
  return Math.max(1, asked < 0 ? Math.trunc(max / -asked) : asked)
}

function countsFromRow(row: Record<string, unknown>): unknown {
  if (row.dispatcher_pid === null) return null
  // without a bind nobody waited, and the engine's 0 is no measurement
  const waited = Number(row.binds) > 0
  return {
    since: row.since,
    shared: row.shared,
    dedicated: row.dedicated,
    native: row.native,
    login: row.login,
    bound: row.bound,
    parked: row.parked,
    waiting: row.waiting,
    workers: row.workers,
    freeWorkers: row.free_workers,
    pools: row.pools,
    transactions: row.transactions,
    timeouts: row.timeouts,
    waitP50Ms: waited ? row.wait_p50 : null,
    waitP99Ms: waited ? row.wait_p99 : null,
    memoryBytes: row.memory_bytes,
  }
}

const poolFromRow = ({ free_workers, mean_wait, ...row }: Record<string, unknown>) => ({
  ...row,
  freeWorkers: free_workers,
  meanWaitMs: mean_wait,
})

/** The same with sessions, workers and pools, and why sessions are pinned. */
export async function readSharedServer(
  ask: AskRows,
  postmasterPid: number | null,
): Promise<SharedServer | null> {
  const within = await viewsOf(ask, EXTENSION)
  if (!within) return null
  const seen = seenFromRow((await ask(within(seenSql)))?.[0], postmasterPid)
  const counts = (await ask(within(countsSql)))?.[0]
  if (!seen || !counts) return null
  const read = SharedServer.safeParse({
    ...seen,
    tls: counts.tls,
    workersMax: workersMax(counts.backend_max_count, counts.max_connections),
    sessionsMax: counts.sessions_max,
    memoryMaxBytes: counts.memory_max_bytes,
    counts: countsFromRow(counts),
    pinned: (await ask(within(pinnedSql))) ?? [],
    pools: ((await ask(within(poolsSql))) ?? []).map(poolFromRow),
  })
  return read.success ? read.data : null
}
