import { randomBytes } from 'node:crypto'
import type { Upstream } from '@floe/agent-contract'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { fault, foreseeableLogin, newLogin, toFault } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type pg from 'pg'
import { z } from 'zod'
import { readClusterSettings, writeClusterSettings, writePassFile } from '../engine/cluster-files'
import type { Instance } from '../engine/instance'
import {
  abandonedStandbyRoles,
  defineMemberRole,
  endSessionsOfRetired,
  retireMemberRole,
  withRolesLocked,
} from '../engine/member-roles'
import { isThere } from '../host/tree'
import { letIn, withPrimarySession } from './admit-standby'
import { waitUntilStreaming, writeUpstream } from './follow-upstream'
import { reload } from './reload-instance'
import { serveTls } from './serve-tls'
import type { TaskBody, TaskContext } from './task'

/** A synchronous commit may wait this long for a standby that cannot come as its new role. */
const STREAM_BOUND_MS = 10_000

/**
 * Makes up the role that a member of an earlier version is to come as. Until it does, the agent reports the one it comes as,
 * so that no pg_hba.conf written meanwhile shuts it out.
 */
export const prepareRole: TaskBody<'prepare-role'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { registered, logins } = instance
  const former = foreseeableLogin('standby', registered.name)
  const password = registered.replicationPassword
  if (logins.replication !== former || password === undefined)
    return { role: logins.replication, former: null, verifier: null }
  const role =
    registered.replicationRole ?? newLogin('standby', registered.name, randomBytes(8).toString('hex'))
  context.registry.update(task.instanceId, { replicationRole: role, followsAs: former })
  writePassFile(instance.layout, [role, former], password, instance.user)
  return { role, former, verifier: scramVerifier(password) }
}

/** Creates the roles that members are to come as, and lets them in beside those that they come as now. */
export const admitRoles: TaskBody<'admit-roles'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  return withPrimarySession(instance, async (client) => {
    await refuseStandby(instance, client)
    await serveTls(instance, client)
    await withRolesLocked(client, async () => {
      for (const { role, verifier } of task.logins) await defineMemberRole(client, role, verifier)
    })
    await letIn(instance, client, task.roles)
    for (const { role } of task.logins) context.log(`role "${role}" may replicate`)
    return {}
  })
}

async function refuseStandby(instance: Instance, client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ standby: boolean }>('select pg_is_in_recovery() as standby')
  if (rows[0]?.standby)
    throw fault('instance.is_standby', 'roles are made on the primary only', {
      detail: `Instance "${instance.registered.name}" is in recovery.`,
    })
}

const Former = z.object({ conninfo: z.string() })

/**
 * Has a member come as another role. Its engine keeps running: only the WAL receiver restarts. What it followed by
 * before is noted first, so that a run after a kill finds it.
 */
export const replicateAs: TaskBody<'replicate-as'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { upstream, former } = task
  const conninfo = readClusterSettings(instance.layout).get('primary_conninfo')
  // a primary, and a standby that is to receive nothing now, follow as what they are told when they next do
  if (!isThere(instance.layout.standbySignal) || !conninfo) {
    noteRole(task.instanceId, upstream.role, context)
    return { streaming: false }
  }
  const noted = Former.safeParse(context.note.read())
  const before = noted.success ? noted.data : { conninfo }
  if (!noted.success) context.note.write(before)
  writeUpstream(instance, upstream, context)
  await instance.look()
  if (!instance.postmaster) {
    context.log(`it is not running; it comes as "${upstream.role}" when it starts`)
    return { streaming: false }
  }
  try {
    await instance.connect((client) => reload(instance, client))
    await waitUntilStreaming(instance, upstream, context, STREAM_BOUND_MS)
    return { streaming: true }
  } catch (error) {
    await goBack(instance, { ...upstream, role: former }, before.conninfo, context)
    context.signal.throwIfAborted()
    const { message, detail } = toFault(error)
    throw fault(
      'standby.role_refused',
      `instance "${instance.registered.name}" does not stream as its new role`,
      {
        detail: `It goes on as role "${former}". ${[message, detail].filter(Boolean).join(': ')}`,
        hint: `Its log is in directory "${instance.layout.logDirectory}".`,
      },
    )
  }
}

/** The role that the agent reports, and that pg_hba.conf of the other members lets in. */
const noteRole = (instanceId: string, role: string, { registry }: Pick<TaskContext, 'registry'>) =>
  registry.update(instanceId, { followsAs: role })

async function goBack(
  instance: Instance,
  upstream: Upstream,
  conninfo: string,
  context: TaskContext,
): Promise<void> {
  noteRole(instance.instanceId, upstream.role, context)
  const settings = readClusterSettings(instance.layout).set('primary_conninfo', conninfo)
  writeClusterSettings(instance.layout, settings, instance.user)
  try {
    await instance.connect((client) => reload(instance, client))
    if (context.signal.aborted) return
    await waitUntilStreaming(instance, upstream, context, STREAM_BOUND_MS)
  } catch (error) {
    context.log(`as role "${upstream.role}" it does not stream either: ${toFault(error).message}`)
  }
}

/** Takes roles away that no member comes as any more. One that is still in use stays, and stays let in. */
export const retireRoles: TaskBody<'retire-roles'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  return withPrimarySession(instance, async (client) => {
    await refuseStandby(instance, client)
    const kept: string[] = []
    for (const { role, successor } of task.retired) {
      if (successor === null || (await oidOf(client, role)) === null) continue
      if (await comesAs(client, successor, context)) continue
      kept.push(role)
      context.log(`role "${role}" stays: "${successor.name}" does not replicate as "${successor.role}"`)
    }
    const going: { role: string; oid: number }[] = []
    await withRolesLocked(client, async () => {
      const abandoned = await abandonedStandbyRoles(client, new Set([...task.roles, ...kept]))
      for (const role of new Set([...task.retired.map((r) => r.role), ...abandoned])) {
        const oid = kept.includes(role) ? null : await oidOf(client, role)
        if (oid === null) continue
        await retireMemberRole(client, role, context.log)
        going.push({ role, oid })
      }
    })
    await letIn(instance, client, [...task.roles, ...kept])
    await endSessionsOfRetired(
      client,
      going.map(({ oid }) => oid),
    )
    return { retired: going.map(({ role }) => role), kept }
  })
}

async function oidOf(client: pg.Client, role: string): Promise<number | null> {
  const { rows } = await client.query<{ oid: number }>(
    'select oid::int8 as oid from pg_roles where rolname = $1',
    [role],
  )
  return rows[0]?.oid ?? null
}

const comesAs = (
  client: pg.Client,
  successor: { name: string; role: string },
  { signal }: Pick<TaskContext, 'signal'>,
) =>
  waitFor(
    async () => {
      const { rowCount } = await client.query(
        `select from pg_stat_replication
          where application_name = $1 and usename = $2 and state in ('catchup', 'streaming')`,
        [successor.name, successor.role],
      )
      return rowCount !== 0
    },
    { boundMs: STREAM_BOUND_MS, everyMs: 50, signal },
  )
