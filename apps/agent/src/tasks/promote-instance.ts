import { exactBytes, fault, type Lsn, lsnDistance } from '@floe/domain'
import type pg from 'pg'
import { readClusterSettings, writeClusterSettings } from '../engine/cluster-files'
import type { Instance } from '../engine/instance'
import { withPrimarySession } from './admit-standby'
import { reload } from './reload-instance'
import { type TaskBody, type TaskContext, waitFor } from './task'

/** A standby that has stood still for so long will not get what it lacks; one that replays is waited for. */
const STILL_MS = 2_000
const REPLAY_BOUND_MS = 600_000
const PROMOTE_BOUND_MS = 60_000

type Position = { inRecovery: boolean; endLsn: string | null; replayedLsn: string | null; timeline: number }

async function position(client: pg.Client): Promise<Position> {
  const { rows } = await client.query<Position>(
    `select pg_is_in_recovery() as "inRecovery",
            greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::text as "endLsn",
            pg_last_wal_replay_lsn()::text as "replayedLsn",
            case when pg_is_in_recovery() then (select timeline_id from pg_control_checkpoint())
                 else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end as timeline`,
  )
  return rows[0] as Position
}

/** Makes a standby the primary, once it has all that it must have. Run again after it was promoted, it only says so. */
export const promoteInstance: TaskBody<'promote-instance'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const begun = performance.now()
  return instance.connect(async (client) => {
    const first = await position(client)
    if (!first.inRecovery) {
      await settle(instance, task.standbyNames, client, context)
      context.log('it is the primary already')
      return { timeline: first.timeline, promoteMs: 0, endLsn: first.replayedLsn as Lsn | null }
    }
    const ready = await waitForWal(client, task, context)
    // from its first commit on it waits for whom it has to wait
    writeNames(instance, task.standbyNames, false, context)
    await reload(instance, client)
    context.signal.throwIfAborted()
    context.log(`promoting at ${ready.replayedLsn}`)
    await client.query('select pg_promote(false)')
    const now = await waitFor(
      async () => {
        const seen = await position(client)
        return seen.inRecovery ? null : seen
      },
      { boundMs: PROMOTE_BOUND_MS, everyMs: 5 },
    )
    if (now === null)
      throw fault('promote.not_promoted', 'the standby did not become a primary within a minute', {
        hint: `Its log is in directory "${instance.layout.logDirectory}".`,
      })
    const promoteMs = performance.now() - begun
    context.log(`it is the primary, on timeline ${now.timeline}, after ${Math.round(promoteMs)} ms`)
    await settle(instance, task.standbyNames, client, context)
    return { timeline: now.timeline, promoteMs, endLsn: ready.endLsn as Lsn | null }
  }, 30_000)
}

/** Refuses, with the missing bytes, a standby that would lose what it must not. */
async function waitForWal(
  client: pg.Client,
  task: { beyondLsn: Lsn | null; atLeastLsn: Lsn | null },
  context: TaskContext,
): Promise<Position> {
  let seen = await position(client)
  let movedAt = performance.now()
  const enough = await waitFor<'yes' | 'no'>(
    async () => {
      const before = seen.replayedLsn
      seen = await position(client)
      if (seen.replayedLsn !== before) movedAt = performance.now()
      const beyond = task.beyondLsn === null || (lsnDistance(task.beyondLsn, seen.replayedLsn) ?? 0) > 0
      const atLeast = task.atLeastLsn === null || (lsnDistance(task.atLeastLsn, seen.endLsn) ?? -1) >= 0
      if (beyond && atLeast) return 'yes'
      return performance.now() - movedAt > STILL_MS ? 'no' : null
    },
    { boundMs: REPLAY_BOUND_MS, everyMs: 5, signal: context.signal },
  )
  if (enough !== 'yes') {
    const wanted = task.beyondLsn ?? task.atLeastLsn
    const missing = lsnDistance(seen.endLsn, wanted)
    throw fault('promote.behind', 'the standby lacks WAL that must not be lost', {
      detail: `It has WAL up to ${seen.endLsn}, needed is ${wanted}: ${missing === null ? 'how much is unknown' : `${exactBytes(Math.max(missing, 1))} are missing`}.`,
      hint: 'Choose another standby.',
    })
  }
  return seen
}

function writeNames(instance: Instance, names: string, primary: boolean, context: TaskContext): void {
  const settings = readClusterSettings(instance.layout)
  if (names) settings.set('synchronous_standby_names', names)
  else settings.delete('synchronous_standby_names')
  if (primary) {
    settings.delete('primary_conninfo')
    settings.delete('primary_slot_name')
  }
  writeClusterSettings(instance.layout, settings, context.user)
}

/** A primary follows nobody; what it followed before must not come back with a later demotion. */
async function settle(
  instance: Instance,
  names: string,
  client: pg.Client,
  context: TaskContext,
): Promise<void> {
  writeNames(instance, names, true, context)
  await reload(instance, client)
  await instance.look()
}

export const setSynchronous: TaskBody<'set-synchronous'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  return instance.connect(async (client) => {
    const before = readClusterSettings(instance.layout)
    const { rows } = await client.query<{ primary: boolean }>('select not pg_is_in_recovery() as primary')
    writeNames(instance, task.standbyNames, rows[0]?.primary === true, context)
    await reload(instance, client)
    const shown = await client.query<{ names: string }>(
      `select current_setting('synchronous_standby_names') as names`,
    )
    const names = shown.rows[0]?.names ?? ''
    if (names !== task.standbyNames) {
      writeClusterSettings(instance.layout, before, context.user)
      await reload(instance, client)
      throw fault('setting.not_applied', 'the engine did not take setting "synchronous_standby_names"', {
        detail: `It is ${JSON.stringify(names)}, wanted is ${JSON.stringify(task.standbyNames)}.`,
        hint: 'A line in postgresql.auto.conf or on the command line wins over it.',
      })
    }
    context.log(names ? `commits wait for ${names}` : 'commits wait for no standby')
    return { standbyNames: names }
  })
}

/** synchronous_commit of a database, a role, or a role in a database. */
export const setCommitMode: TaskBody<'set-commit-mode'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { database, role, commitMode } = task
  if (database === null && role === null)
    throw fault('commit_mode.no_scope', 'a database or a role has to be named')
  return withPrimarySession(instance, async (client) => {
    const quoted = (name: string) => client.escapeIdentifier(name)
    const target =
      role === null
        ? `DATABASE ${quoted(database as string)}`
        : `ROLE ${quoted(role)}${database === null ? '' : ` IN DATABASE ${quoted(database)}`}`
    const action =
      commitMode === null ? 'RESET synchronous_commit' : `SET synchronous_commit = '${commitMode}'`
    try {
      await client.query(`ALTER ${target} ${action}`)
    } catch (error) {
      throw fault('commit_mode.not_set', error instanceof Error ? error.message : String(error))
    }
    context.log(`ALTER ${target} ${action}; it holds for new sessions`)
    return { commitMode }
  })
}
