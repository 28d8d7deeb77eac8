import { COMMIT_FLOOR, fault, RECEIVER_TIMEOUT } from '@floe/domain'
import type pg from 'pg'
import { readClusterSettings, writeClusterSettings } from '../engine/cluster-files'
import type { Instance } from '../engine/instance'
import { keepPrimary } from '../engine/keep-primary'
import { reload } from './reload-instance'
import type { TaskBody } from './task'

/** The agent keeps who the primary is, and whether the member is held back, before the console records that it is. */
export const keepPrimaryTold: TaskBody<'keep-primary'> = async (task, context) => {
  if (!keepPrimary(context.registry, task.instanceId, task.primary))
    throw fault('primary.newer_known', 'the agent was told of a newer primary', {
      detail: `It knows timeline ${context.registry.get(task.instanceId).primaryKnown?.timeline}; the order names ${task.primary.timeline}.`,
      hint: 'The control database may be older than the cluster: read the open incidents.',
    })
  context.log(
    task.primary.heldBack
      ? 'it starts as a primary only by an order of the console'
      : 'it is no longer held back',
  )
  return {}
}

type Wanted = ReadonlyMap<string, string | null>

/** Below which level no commit waits, and when a standby takes a silent primary for lost. */
export const setCommitFloor: TaskBody<'set-commit-floor'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { commitFloor, receiverTimeoutMs } = task
  const wanted: Wanted = new Map([
    [COMMIT_FLOOR, commitFloor],
    [RECEIVER_TIMEOUT, receiverTimeoutMs === null ? null : `${receiverTimeoutMs}ms`],
  ])
  await instance.look()
  if (!instance.postmaster) {
    // whether its engine knows the setting cannot be asked, and one that does not would never start with it
    if (commitFloor !== null)
      throw fault('instance.not_running', `instance "${instance.registered.name}" is not running`, {
        hint: 'Start it first.',
      })
    write(instance, wanted)
    return { inForce: false }
  }
  return instance.connect(async (client) => {
    if (commitFloor !== null && (await shown(client, COMMIT_FLOOR)) === null)
      throw fault('setting.unknown', `setting "${COMMIT_FLOOR}" does not exist`, {
        detail: 'The engine of the instance is older than automatic failover.',
        hint: 'Run "./floe up" on its host, then restart the instance.',
      })
    const before = readClusterSettings(instance.layout)
    write(instance, wanted)
    await reload(instance, client)
    const floor = await shown(client, COMMIT_FLOOR)
    if (commitFloor !== null && floor !== commitFloor) {
      writeClusterSettings(instance.layout, before, instance.user)
      await reload(instance, client)
      throw fault('setting.not_applied', `the engine did not take setting "${COMMIT_FLOOR}"`, {
        detail: `It is "${floor}", wanted is "${commitFloor}".`,
        hint: 'A line in postgresql.auto.conf or on the command line wins over it.',
      })
    }
    context.log(
      commitFloor ? `no commit waits for less than ${commitFloor}` : `${COMMIT_FLOOR} is taken away`,
    )
    return { inForce: true }
  })
}

function write(instance: Instance, wanted: Wanted): void {
  const settings = readClusterSettings(instance.layout)
  for (const [name, value] of wanted)
    if (value === null) settings.delete(name)
    else settings.set(name, value)
  writeClusterSettings(instance.layout, settings, instance.user)
}

async function shown(client: pg.Client, name: string): Promise<string | null> {
  const { rows } = await client.query<{ value: string | null }>('select current_setting($1, true) as value', [
    name,
  ])
  return rows[0]?.value ?? null
}
