import { fault } from '@floe/domain'
import type pg from 'pg'
import { keepPrimary } from '../../engine/cluster/keep-primary'
import { clearFence } from '../../engine/cluster/member-files'
import { isThere } from '../../host/tree'
import type { TaskBody, TaskContext } from '../runner/task'
import { startFollowing } from './start-following'

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
