import type { TaskResult } from '@floe/agent-contract'
import { COMMIT_FLOOR, exactBytes, fault, type Lsn, lsnDistance, toFault } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type pg from 'pg'
import { readCommitModes } from '../../engine/cluster/commit-modes'
import { keepPrimary } from '../../engine/cluster/keep-primary'
import { namesInForce, writeNames } from '../../engine/cluster/standby-names'
import type { Instance } from '../../engine/instance'
import { reload } from '../../engine/process/reload'
import { ancestorsOf, endOnStandby, type Recovered } from '../../engine/wal/wal-end'
import type { TaskBody, TaskContext, TaskOf } from '../runner/task'

/** A standby that has stood still for so long will not get what it lacks; one that replays is waited for. */
const STILL_MS = 2_000
const REPLAY_BOUND_MS = 600_000
/** While its former primary could go on instead, clients do not wait longer for it to replay. */
const HANDOVER_BOUND_MS = 30_000
const PROMOTE_BOUND_MS = 30_000
const LEVELS_BOUND_MS = 2_000

type Position = Recovered & { inRecovery: boolean; endLsn: Lsn | null; timeline: number }

async function position(client: pg.Client): Promise<Position> {
  const { rows } = await client.query<Position>(
    `select pg_is_in_recovery() as "inRecovery",
            greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::text as "endLsn",
            pg_last_wal_receive_lsn()::text as received, pg_last_wal_replay_lsn()::text as replayed,
            case when pg_is_in_recovery() then (select timeline_id from pg_control_checkpoint())
                 else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int end as timeline`,
  )
  return rows[0] as Position
}

/**
 * Makes a standby the primary, once it has all that it must have. Run again after it was promoted, it only says so. Where it
 * fails before it has ordered the engine, its fault says so: the caller may then try again, or have another one promoted.
 */
export const promoteInstance: TaskBody<'promote-instance'> = async (task, context) => {
  // the run before, of which nothing is known, may have ordered the engine
  const asked = { engine: context.resumed }
  try {
    return await promote(task, context, asked)
  } catch (error) {
    const given = toFault(error)
    // given up, and yet the engine may go on with it: not to be taken for one that was never asked
    if (asked.engine && context.signal.aborted)
      throw fault(
        'promote.not_promoted',
        'the promotion was cancelled when the engine may already have received it',
        {
          detail: 'The standby may still become a primary.',
        },
      )
    if (asked.engine || context.signal.aborted || given.code === 'promote.behind') throw error
    throw fault('promote.not_begun', given.message, {
      ...(given.detail ? { detail: given.detail } : {}),
      ...(given.hint ? { hint: given.hint } : {}),
      cause: error,
    })
  }
}

async function promote(
  task: TaskOf<'promote-instance'>,
  context: TaskContext,
  asked: { engine: boolean },
): Promise<TaskResult<'promote-instance'>> {
  const instance = context.instances.get(task.instanceId)
  const begun = performance.now()
  return instance.connect(async (client) => {
    const ancestors = ({ timeline }: Position) => ancestorsOf(instance.layout.dataDirectory, timeline)
    // kept only once it is one: what is begun, the console has recorded before
    const keep = ({ timeline }: Position) => {
      if (task.ofCluster)
        keepPrimary(context.registry, task.instanceId, { instanceId: task.instanceId, timeline })
      // of the cluster that it leaves it has nothing to say any more
      else context.registry.update(task.instanceId, { primaryKnown: undefined })
    }
    const first = await position(client)
    if (!first.inRecovery) {
      asked.engine = true
      keep(first)
      await settle(instance, task, client)
      context.log('it is the primary already')
      return {
        timeline: first.timeline,
        promoteMs: 0,
        endLsn: first.replayed,
        ancestors: ancestors(first),
        standbyNames: null,
        ...(await commitLevels(client, context)),
      }
    }
    const ready = await waitForWal(client, instance, task, context)
    // from its first commit on it waits for whom it has to wait
    writeNames(instance, task.standbyNames, 'standby')
    await reload(instance, client)
    const namesBefore = await namesInForce(client)
    context.signal.throwIfAborted()
    context.log(`promoting at ${ready.replayed}`)
    asked.engine = true
    await client.query('select pg_promote(false)')
    const now = await waitFor(
      async () => {
        const seen = await position(client)
        return seen.inRecovery ? null : seen
      },
      { boundMs: PROMOTE_BOUND_MS, everyMs: 5 },
    )
    if (now === null)
      throw fault('promote.not_promoted', 'the standby did not become a primary within 30 s', {
        hint: `Its log is in directory "${instance.layout.logDirectory}".`,
      })
    const promoteMs = performance.now() - begun
    keep(now)
    context.log(`it is the primary, on timeline ${now.timeline}, after ${Math.round(promoteMs)} ms`)
    await settle(instance, task, client)
    // a line in postgresql.auto.conf or on the command line wins over what was written
    const asAsked = [namesBefore, await namesInForce(client)].every((names) => names === task.standbyNames)
    return {
      timeline: now.timeline,
      promoteMs,
      endLsn: ready.endLsn,
      ancestors: ancestors(now),
      standbyNames: asAsked ? task.standbyNames : null,
      ...(await commitLevels(client, context)),
    }
  }, 30_000)
}

/** What commits of the new primary wait for. A catalog that somebody has locked must not hold up its promotion. */
async function commitLevels(
  client: pg.Client,
  context: TaskContext,
): Promise<Pick<TaskResult<'promote-instance'>, 'synchronousCommit' | 'commitModes' | 'commitFloor'>> {
  try {
    await client.query(`set statement_timeout to ${LEVELS_BOUND_MS}`)
    const { rows } = await client.query<{ level: string; floor: string | null }>(
      `select current_setting('synchronous_commit') as level, current_setting('${COMMIT_FLOOR}', true) as floor`,
    )
    return {
      synchronousCommit: rows[0]?.level ?? null,
      commitFloor: rows[0]?.floor ?? null,
      commitModes: await readCommitModes(client),
    }
  } catch (error) {
    context.log(`what its databases and roles commit with could not be read: ${String(error)}`)
    return { synchronousCommit: null, commitFloor: null, commitModes: null }
  }
}

/** Refuses, with the missing bytes, a standby that would lose what it must not. */
async function waitForWal(
  client: pg.Client,
  instance: Instance,
  task: { beyondLsn: Lsn | null; atLeastLsn: Lsn | null },
  context: TaskContext,
): Promise<Position> {
  let seen = await position(client)
  // what is on its disk from before its start is replayed before it is promoted
  const onDisk =
    task.atLeastLsn !== null && seen.received === null
      ? ((await endOnStandby(instance, context, seen))?.lsn ?? null)
      : null
  let movedAt = performance.now()
  const enough = await waitFor<'yes' | 'no'>(
    async () => {
      const before = seen.replayed
      seen = await position(client)
      if (seen.replayed !== before) movedAt = performance.now()
      const beyond = task.beyondLsn === null || (lsnDistance(task.beyondLsn, seen.replayed) ?? 0) > 0
      const atLeast =
        task.atLeastLsn === null || (lsnDistance(task.atLeastLsn, onDisk ?? seen.endLsn) ?? -1) >= 0
      if (beyond && atLeast) return 'yes'
      return performance.now() - movedAt > STILL_MS ? 'no' : null
    },
    {
      boundMs: task.beyondLsn === null ? REPLAY_BOUND_MS : HANDOVER_BOUND_MS,
      everyMs: 5,
      signal: context.signal,
    },
  )
  if (enough !== 'yes') {
    const wanted = task.beyondLsn ?? task.atLeastLsn
    const missing = lsnDistance(seen.endLsn, wanted)
    if (missing !== null && missing < 0)
      throw fault('promote.behind', 'the standby has not replayed in time what it has received', {
        detail: `It has WAL up to ${seen.endLsn} and has replayed it up to ${seen.replayed}; needed is ${wanted}.`,
        hint: 'Find out what holds its replay up, or choose another standby.',
      })
    throw fault('promote.behind', 'the standby lacks WAL that must not be lost', {
      detail: `It has WAL up to ${seen.endLsn}, needed is ${wanted}: ${missing === null ? 'how much is unknown' : `${exactBytes(Math.max(missing, 1))} are missing`}.`,
      hint: 'Choose another standby.',
    })
  }
  return seen
}

/** A primary follows nobody; what it followed before must not come back with a later demotion. */
async function settle(
  instance: Instance,
  { standbyNames, ofCluster }: Pick<TaskOf<'promote-instance'>, 'standbyNames' | 'ofCluster'>,
  client: pg.Client,
): Promise<void> {
  writeNames(instance, standbyNames, ofCluster ? 'primary' : 'on its own')
  await reload(instance, client)
  await instance.look()
}
