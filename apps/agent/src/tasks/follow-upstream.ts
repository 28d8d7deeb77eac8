import type { Upstream } from '@floe/agent-contract'
import { fault, type Lsn, MemberLogin } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type pg from 'pg'
import {
  clearFence,
  readClusterSettings,
  standbySettings,
  writeClusterSettings,
  writeFence,
  writeStandbySignal,
} from '../engine/cluster-files'
import { sqlState } from '../engine/connection'
import type { Instance } from '../engine/instance'
import { keepPrimary } from '../engine/keep-primary'
import { isThere } from '../host/tree'
import { reload } from './reload-instance'
import { makeReady } from './start-instance'
import { endInstance } from './stop-instance'
import type { TaskBody, TaskContext } from './task'
import { ancestorsOf, endOnStandby, type Recovered } from './wal-end'

/** A standby that has WAL to replay first streams only afterwards. */
const STREAM_BOUND_MS = 600_000
const QUICK_BOUND_MS = 15_000
/** How long the engine may say that it cannot follow before that is believed. */
const REFUSED_AFTER_MS = 10_000

type Receiver = { status: string; host: string | null; port: number | null; role: string | null } | undefined

const receiverOf = async (client: pg.Client): Promise<Receiver> =>
  (
    await client.query<NonNullable<Receiver>>(
      `select status, sender_host as host, sender_port as port,
              substring(conninfo from '(?:^| )user=([^ ]+)') as role
         from pg_stat_wal_receiver`,
    )
  ).rows[0]

const streamsFrom = (r: Receiver, upstream: Upstream) =>
  r?.status === 'streaming' &&
  r.host === upstream.host &&
  r.port === upstream.port &&
  r.role === upstream.role

/** Writes whom a standby follows; it takes effect at the next start or reload. */
export function writeUpstream(
  instance: Instance,
  upstream: Upstream | null,
  context: Pick<TaskContext, 'registry'>,
): void {
  const role = MemberLogin.safeParse(upstream?.role)
  if (role.success) context.registry.update(instance.instanceId, { followsAs: role.data })
  writeClusterSettings(
    instance.layout,
    standbySettings(upstream, instance.asking, readClusterSettings(instance.layout)),
    instance.user,
  )
}

/**
 * Starts a stopped member as a standby and waits until it streams. Its fence ends last, when it follows: one that does not
 * start, or cannot follow, is stopped and stays fenced.
 */
export const followUpstream: TaskBody<'follow-upstream'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const begun = performance.now()
  if (task.primary) keepPrimary(context.registry, task.instanceId, task.primary)
  if (!isThere(instance.layout.dataDirectory))
    throw fault('instance.no_data_directory', 'the instance has no data directory')
  const postmasterPid = await startFollowing(instance, task.upstream, context)
  clearFence(instance.layout)
  await instance.connect((client) => dropSlots(client, context))
  await instance.look()
  return { postmasterPid, streamingMs: performance.now() - begun }
}

/**
 * Starts a member as a standby, fenced as it may be, and waits until it streams; answers the postmaster's pid. One that
 * does not get there is stopped and fenced.
 */
export async function startFollowing(
  instance: Instance,
  upstream: Upstream,
  context: TaskContext,
): Promise<number> {
  writeStandbySignal(instance.layout, instance.user)
  writeUpstream(instance, upstream, context)
  try {
    const { postmasterPid } = await makeReady(instance, context, { asStandby: true })
    await waitUntilStreaming(instance, upstream, context, STREAM_BOUND_MS)
    return postmasterPid
  } catch (error) {
    if (context.signal.aborted) throw error
    writeFence(instance.layout, 'it could not follow the primary', instance.user)
    await endInstance(instance, 'fast', context)
    throw error
  }
}

/** Nobody follows a standby: slots it has from when it was the primary would keep WAL for good. */
async function dropSlots(client: pg.Client, context: TaskContext): Promise<void> {
  const { rows } = await client.query<{ slot: string }>(
    `select slot_name as slot from pg_replication_slots
      where slot_type = 'physical' and not active and slot_name like 'floe\\_%'`,
  )
  for (const { slot } of rows) {
    await client.query('select pg_drop_replication_slot($1)', [slot])
    context.log(`dropped slot "${slot}" of its time as the primary`)
  }
}

/** Waits until a standby streams from its upstream, as the role that it is to come as there. */
export async function waitUntilStreaming(
  instance: Instance,
  upstream: Upstream,
  context: Pick<TaskContext, 'log' | 'signal'>,
  boundMs: number,
): Promise<void> {
  const begun = performance.now()
  let said = false
  const streams = await waitFor(
    async () => {
      const refused = followRefusal(instance)
      if (refused && performance.now() - begun > REFUSED_AFTER_MS)
        throw fault(
          'standby.cannot_follow',
          `instance "${instance.registered.name}" cannot follow the primary`,
          {
            detail: refused,
            hint: 'Rejoin it: by pg_rewind where that is allowed, else by a new copy.',
          },
        )
      const seen = await instance.connect(receiverOf).catch((error) => {
        // an engine that is up and refuses the agent itself will not come to like it
        if (sqlState(error.cause)?.startsWith('28')) throw error
        return undefined
      })
      if (streamsFrom(seen, upstream)) return true
      if (!said && performance.now() - begun > 2_000) {
        said = true
        context.log('waiting until it streams')
      }
      return false
    },
    { boundMs, everyMs: 30, signal: context.signal },
  )
  if (streams === null)
    throw fault('standby.not_streaming', `instance "${instance.registered.name}" does not stream`, {
      detail: instance.recentComplaints().at(-1) ?? 'Its log gives no reason.',
      hint: `Its log is in directory "${instance.layout.logDirectory}".`,
    })
  context.log(`streams from ${upstream.host}:${upstream.port}`)
}

/** Words that mean that no waiting helps: its history and the upstream's parted, or its WAL is gone. */
const parted =
  /requested starting point .* is not in this server's history|new timeline \d+ forked off|has already been removed|database system identifier differs|requested WAL segment|highest timeline \d+ of the primary is behind/i

function followRefusal(instance: Instance): string | null {
  return (
    instance
      .recentComplaints()
      .filter((words) => parted.test(words))
      .at(-1) ?? null
  )
}

/** Has a running standby receive its WAL from another member. */
export const repointStandby: TaskBody<'repoint-standby'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  if (task.primary) keepPrimary(context.registry, task.instanceId, task.primary)
  writeUpstream(instance, task.upstream, context)
  await instance.look()
  if (!instance.postmaster) {
    context.log('it is not running; it follows when it starts')
    return { streaming: false }
  }
  await instance.connect((client) => reload(instance, client))
  if (!task.wait) return { streaming: false }
  await waitUntilStreaming(instance, task.upstream, context, QUICK_BOUND_MS)
  return { streaming: true }
}

/** Ends a standby's WAL receiver for good; what it had received is flushed by its end. */
export const isolateStandby: TaskBody<'isolate-standby'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  writeUpstream(instance, null, context)
  return instance.connect(async (client) => {
    await reload(instance, client)
    const gone = await waitFor(async () => (await receiverOf(client)) === undefined, {
      boundMs: QUICK_BOUND_MS,
      everyMs: 10,
      signal: context.signal,
    })
    if (gone === null) throw fault('standby.still_receiving', 'the standby goes on receiving WAL')
    const { rows } = await client.query<{ inRecovery: boolean; flushed: Lsn; timeline: number } & Recovered>(
      `select pg_is_in_recovery() as "inRecovery", pg_last_wal_receive_lsn()::text as received,
              pg_last_wal_replay_lsn()::text as replayed,
              case when not pg_is_in_recovery() then pg_current_wal_flush_lsn()::text end as flushed,
              case when not pg_is_in_recovery()
                then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end as timeline`,
    )
    const seen = rows[0]
    if (!seen) throw fault('instance.no_answer', 'the standby did not report the end of its WAL')
    const end = seen.inRecovery
      ? await endOnStandby(instance, context, seen)
      : {
          lsn: seen.flushed,
          timeline: seen.timeline,
          ancestors: ancestorsOf(instance.layout.dataDirectory, seen.timeline),
        }
    context.log(
      end ? `it has WAL up to ${end.lsn} on timeline ${end.timeline}` : 'the end of its WAL is unknown',
    )
    return {
      endLsn: end?.lsn ?? null,
      replayedLsn: seen.replayed,
      timeline: end?.timeline ?? null,
      ancestors: end?.ancestors ?? null,
      inRecovery: seen.inRecovery,
    }
  })
}
