import { fault, type Lsn } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import { OBEY_BOUND_MS, receiverOf } from '../../engine/cluster/streaming'
import { writeUpstream } from '../../engine/cluster/upstream'
import { reload } from '../../engine/process/reload'
import { ancestorsOf, endOnStandby, type Recovered } from '../../engine/wal/wal-end'
import type { TaskBody } from '../runner/task'

/** Ends a standby's WAL receiver for good; what it had received is flushed by its end. */
export const isolateStandby: TaskBody<'isolate-standby'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  writeUpstream(instance, null, context)
  return instance.connect(async (client) => {
    await reload(instance, client)
    const gone = await waitFor(async () => (await receiverOf(client)) === undefined, {
      boundMs: OBEY_BOUND_MS,
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
