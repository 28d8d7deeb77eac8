import { existsSync } from 'node:fs'
import type { Upstream } from '@floe/agent-contract'
import { fault } from '@floe/domain'
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
import { reload } from './reload-instance'
import { makeReady } from './start-instance'
import { endInstance } from './stop-instance'
import { type TaskBody, type TaskContext, waitFor } from './task'

/** A standby that has WAL to replay first streams only afterwards. */
const STREAM_BOUND_MS = 600_000
const QUICK_BOUND_MS = 15_000
/** How long the engine may say that it cannot follow before that is believed. */
const REFUSED_AFTER_MS = 10_000

type Receiver = { status: string; host: string | null; port: number | null } | undefined

const receiverOf = async (client: pg.Client): Promise<Receiver> =>
  (
    await client.query<NonNullable<Receiver>>(
      'select status, sender_host as host, sender_port as port from pg_stat_wal_receiver',
    )
  ).rows[0]

const streamsFrom = (r: Receiver, upstream: Upstream) =>
  r?.status === 'streaming' && r.host === upstream.host && r.port === upstream.port

/** Writes whom a standby follows; it takes effect at the next start or reload. */
function writeUpstream(instance: Instance, upstream: Upstream | null, context: TaskContext): void {
  writeClusterSettings(
    instance.layout,
    standbySettings(upstream, instance.asking, readClusterSettings(instance.layout)),
    context.user,
  )
}

/**
 * Starts a stopped member as a standby and waits until it streams. Its signal file lies there before its fence ends, so it
 * can be no primary at any moment; when it cannot follow, it is stopped and fenced again.
 */
export const followUpstream: TaskBody<'follow-upstream'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const begun = performance.now()
  if (!existsSync(instance.layout.dataDirectory))
    throw fault('instance.no_data_directory', 'the instance has no data directory')
  writeStandbySignal(instance.layout, context.user)
  writeUpstream(instance, task.upstream, context)
  clearFence(instance.layout)
  const { postmasterPid } = await makeReady(instance, context)
  try {
    await waitUntilStreaming(instance, task.upstream, context, STREAM_BOUND_MS)
  } catch (error) {
    if (context.signal.aborted) throw error
    writeFence(instance.layout, 'it could not follow the primary', context.user)
    await endInstance(instance, 'fast', context)
    throw error
  }
  await instance.connect((client) => dropSlots(client, context))
  await instance.look()
  return { postmasterPid, streamingMs: performance.now() - begun }
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

async function waitUntilStreaming(
  instance: Instance,
  upstream: Upstream,
  context: TaskContext,
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
      detail: instance.recentComplaints().at(-1) ?? 'Its log says nothing about it.',
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
    const { rows } = await client.query<{ endLsn: string; replayedLsn: string; timeline: number }>(
      `select greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::text as "endLsn",
              pg_last_wal_replay_lsn()::text as "replayedLsn",
              (select timeline_id from pg_control_checkpoint()) as timeline`,
    )
    const seen = rows[0]
    context.log(`it has WAL up to ${seen?.endLsn}`)
    return {
      endLsn: (seen?.endLsn ?? null) as never,
      replayedLsn: (seen?.replayedLsn ?? null) as never,
      timeline: seen?.timeline ?? null,
    }
  })
}
