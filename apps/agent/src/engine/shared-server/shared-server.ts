import {
  DISPATCHERS_MAX,
  type DispatcherSeen,
  type DispatcherState,
  SharedServer,
  SharedServerSeen,
} from '@floe/domain'
import { readChild } from '@floe/host/process'
import { z } from 'zod'
import { type AskRows, viewsOf } from '../sql/extension-views'
import countsSql from '../sql/shared-server-counts.sql'
import pinnedSql from '../sql/shared-server-pinned.sql'
import poolsSql from '../sql/shared-server-pools.sql'
import seenSql from '../sql/shared-server-seen.sql'
import type { Heartbeats } from './heartbeats'

const EXTENSION = 'shared_server'

/** The instance says which process it is; one that is not the postmaster's child is not believed to be. */
function dispatcherState(pid: unknown, postmasterPid: number | null): DispatcherState {
  const stat = readChild(pid, postmasterPid)
  if (stat === null) return 'absent'
  return /^[Tt]$/.test(stat.state) ? 'stopped' : 'running'
}

/** What the engine says of its dispatchers. */
const Said = z.object({
  now: z.number(),
  dispatcher_count: z.number().int().min(1).max(DISPATCHERS_MAX),
  dispatchers: z
    .array(
      z.object({
        /** Null or left out by version 1.0 of the extension, which shows all of them as one. */
        number: z.number().int().nullish(),
        pid: z.number().int(),
        last_active: z.string().max(100).nullish(),
        relay_last_active: z.string().max(100).nullish(),
      }),
    )
    .max(DISPATCHERS_MAX)
    .nullable(),
})
type SaidOfOne = NonNullable<z.infer<typeof Said>['dispatchers']>[number]

/** Whether a process that was last active then goes on; of one that is stopped by a signal nothing more is reported. */
type GoesOn = (name: string, pid: number, at: string | null | undefined) => boolean | null

function dispatcherFromRow(
  number: number,
  row: SaidOfOne | undefined,
  postmasterPid: number | null,
  goesOn: GoesOn,
): DispatcherSeen {
  const state = dispatcherState(row?.pid, postmasterPid)
  const active = row ? goesOn(`dispatcher ${number}`, row.pid, row.last_active) : null
  const relay = row ? goesOn(`relay ${number}`, row.pid, row.relay_last_active) : null
  // the dispatcher writes down what its relay says
  return { number, state, active, relayActive: active ? relay : null }
}

/** The worst of them, for consoles that know of one. */
function worstState(dispatchers: readonly DispatcherSeen[]): DispatcherState {
  const among = (state: DispatcherState) => dispatchers.some((d) => d.state === state)
  return among('absent') ? 'absent' : among('stopped') ? 'stopped' : 'running'
}

function seenFromRow(
  row: Record<string, unknown> | undefined,
  postmasterPid: number | null,
  goesOn: (nowMs: number) => GoesOn,
) {
  const said = Said.safeParse(row)
  // views of a later version may answer otherwise: then it is unknown, not off
  if (!row || !said.success) return null
  const port = row.port === 0 ? null : row.port
  const { dispatcher_count: count, dispatchers: rows } = said.data
  const judge = goesOn(said.data.now)
  const told = port !== null && !rows?.some((d) => d.number == null)
  const dispatchers = !told
    ? undefined
    : Array.from({ length: count }, (_, n) =>
        dispatcherFromRow(
          n + 1,
          rows?.find((d) => d.number === n + 1),
          postmasterPid,
          judge,
        ),
      )
  const seen = SharedServerSeen.safeParse({
    port,
    enabled: row.enabled,
    sharesTls: row.shares_tls,
    dispatcher:
      port === null
        ? null
        : dispatchers
          ? worstState(dispatchers)
          : dispatcherState(rows?.[0]?.pid, postmasterPid),
    dispatchers,
  })
  return seen.success ? seen.data : null
}

/** Whether sessions of an instance share backends; null for an engine, or a database, without the views. */
export async function lookAtSharedServer(
  ask: AskRows,
  postmasterPid: number | null,
  beats: Heartbeats,
): Promise<SharedServerSeen | null> {
  const within = await viewsOf(ask, EXTENSION)
  if (!within) return null
  return seenFromRow(
    (await ask(within(seenSql)))?.[0],
    postmasterPid,
    (serverMs) => (name, pid, at) => beats.look(name, at == null ? null : { pid, at, serverMs }),
  )
}

/** `polar_ss_backend_max_count` as the engine reads it. */
function workersMax(count: unknown, connections: unknown): number {
  const max = Number(connections)
  const asked = Number(count)
  if (asked === 0 || asked === -1) return max
  return Math.max(1, asked < 0 ? Math.trunc(max / -asked) : asked)
}

function countsFromRow(row: Record<string, unknown>): unknown {
  if (row.dispatchers === 0) return null
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

/** The same with sessions, workers and pools, and why sessions are pinned; who goes on is what the last look has shown. */
export async function readSharedServer(
  ask: AskRows,
  postmasterPid: number | null,
  beats: Heartbeats,
): Promise<SharedServer | null> {
  const within = await viewsOf(ask, EXTENSION)
  if (!within) return null
  const seen = seenFromRow(
    (await ask(within(seenSql)))?.[0],
    postmasterPid,
    () => (name, pid) => beats.last(name, pid),
  )
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
