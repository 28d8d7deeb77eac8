import type { Upstream } from '@floe/agent-contract'
import { fault, foreseeableLogin, slotNameOf } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type pg from 'pg'
import { writeClusterHba } from '../engine/cluster-files'
import type { Instance } from '../engine/instance'
import { defineMemberRole, retireMemberRole, roleExists, withRolesLocked } from '../engine/member-roles'
import { reload } from './reload-instance'
import { serveTls } from './serve-tls'
import type { TaskBody, TaskContext } from './task'

const SLOT_FREE_BOUND_MS = 15_000

/** Role, pg_hba.conf and slot for a member that is to follow this instance, and how to reach it. */
export const admitStandby: TaskBody<'admit-standby'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const role = task.role ?? foreseeableLogin('standby', task.standbyName)
  const slot = slotNameOf(task.standbyName)
  return withPrimarySession(instance, async (client) => {
    const facts = await readFacts(client)
    if (facts.tablespaces > 0)
      throw fault('standby.tablespaces', 'an instance with tablespaces of its own cannot be copied', {
        detail: `Instance "${instance.registered.name}" has ${facts.tablespaces} of them.`,
        hint: 'Move their tables to the default tablespace and drop them.',
      })
    await serveTls(instance, client)
    const { verifier } = task
    if (!facts.inRecovery && verifier !== null) {
      await withRolesLocked(client, async () => {
        await defineMemberRole(client, role, verifier)
        await retireForeseeable(client, task.standbyName, role, context)
      })
      context.log(`role "${role}" may replicate`)
    }
    await letIn(instance, client, task.roles ?? [role])
    if (task.slot) {
      await ensureSlot(client, slot)
      context.log(`slot "${slot}" keeps WAL for it`)
    }
    const upstream: Upstream = {
      ...(await instance.reachedAt()),
      slot,
      role,
      systemIdentifier: facts.systemIdentifier,
      engineVersion: facts.version,
      sizeBytes: facts.sizeBytes,
    }
    return { upstream }
  })
}

/** Removes a member's slot and, unless it stays a member, its role and its lines. */
export const dismissStandby: TaskBody<'dismiss-standby'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const role = task.role ?? foreseeableLogin('standby', task.standbyName)
  return withPrimarySession(instance, async (client) => {
    const droppedSlot = await dropSlot(client, slotNameOf(task.standbyName))
    if (droppedSlot) context.log(`dropped slot "${slotNameOf(task.standbyName)}"`)
    const { inRecovery } = await readFacts(client)
    if (!task.keepRole && !inRecovery)
      await withRolesLocked(client, async () => {
        await retireMemberRole(client, role, context.log)
        await retireForeseeable(client, task.standbyName, role, context)
      })
    if (task.roles) await letIn(instance, client, task.roles)
    return { droppedSlot }
  })
}

/** A commit of such a session that no standby has confirmed for so long is not waited for. */
const UNCONFIRMED = '2 seconds'
const AGAIN = 3

/**
 * A session whose own commits wait for no standby: what it changes is needed to bring standbys back, and must not hang
 * while they are away. Where a commit floor has it wait all the same, the session is ended: its commit is there, and nobody
 * was told so. What it was to do is then done again, for which `run` must change nothing that is as it should be.
 */
export async function withPrimarySession<T>(
  instance: Instance,
  run: (client: pg.Client) => Promise<T>,
): Promise<T> {
  for (let again = 0; ; again++) {
    let ended = Promise.resolve(false)
    const attempt = instance.connect(async (client) => {
      await client.query('set synchronous_commit to local')
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
      const looking = setInterval(() => {
        // one after the other; where one fails, the next may succeed
        ended = ended.then(
          async (did) => did || (await endUnconfirmed(instance, rows[0]?.pid ?? 0).catch(() => false)),
        )
      }, 1_000)
      try {
        return await run(client)
      } finally {
        clearInterval(looking)
      }
    }, 30_000)
    try {
      return await attempt
    } catch (error) {
      // the session may know of its end before the one that ended it
      if (!(await ended) || again === AGAIN) throw error
    }
  }
}

/** Ends such sessions, also one that an agent before this one left behind with its locks; answers whether `pid` was one. */
const endUnconfirmed = (instance: Instance, pid: number): Promise<boolean> =>
  instance.connect(async (client) => {
    const { rows } = await client.query<{ pid: number }>(
      `select pid, pg_terminate_backend(pid) from pg_stat_activity
        where usename = current_user and application_name = current_setting('application_name')
          and wait_event = 'SyncRep' and clock_timestamp() - query_start > $1::interval`,
      [UNCONFIRMED],
    )
    return rows.some((row) => row.pid === pid)
  })

async function readFacts(client: pg.Client) {
  const r = await client.query<{
    inRecovery: boolean
    version: string
    systemIdentifier: string
    sizeBytes: number
    tablespaces: number
  }>(`select pg_is_in_recovery() as "inRecovery", current_setting('server_version') as version,
             (select system_identifier::text from pg_control_system()) as "systemIdentifier",
             (select sum(pg_database_size(oid))::float8 from pg_database) as "sizeBytes",
             (select count(*)::int from pg_tablespace where spcname not in ('pg_default', 'pg_global')) as tablespaces`)
  return r.rows[0] as NonNullable<(typeof r.rows)[0]>
}

/** The role of this member of the time when its name was computed: nobody comes as it any more. */
async function retireForeseeable(
  client: pg.Client,
  standbyName: string,
  role: string,
  { log }: Pick<TaskContext, 'log'>,
): Promise<void> {
  const former = foreseeableLogin('standby', standbyName)
  if (former !== role && (await roleExists(client, former))) await retireMemberRole(client, former, log)
}

/** The lines of pg_hba.conf for the members' roles. */
export async function letIn(instance: Instance, client: pg.Client, roles: readonly string[]): Promise<void> {
  if (writeClusterHba(instance.layout, roles, instance.user)) await reload(instance, client)
}

/** Creates a physical slot that retains WAL from now on; one that has lost its WAL is replaced. */
async function ensureSlot(client: pg.Client, slot: string): Promise<void> {
  const { rows } = await client.query<{ lost: boolean }>(
    `select coalesce(wal_status = 'lost', true) and not active as lost from pg_replication_slots where slot_name = $1`,
    [slot],
  )
  if (rows[0] && !rows[0].lost) return
  if (rows[0]) await client.query('select pg_drop_replication_slot($1)', [slot])
  await client.query('select pg_create_physical_replication_slot($1, true)', [slot])
}

/** Drops a slot, ending who uses it; false where there is none. */
async function dropSlot(client: pg.Client, slot: string): Promise<boolean> {
  const look = async () =>
    (
      await client.query<{ active: number | null }>(
        'select active_pid as active from pg_replication_slots where slot_name = $1',
        [slot],
      )
    ).rows[0]
  if (!(await look())) return false
  const free = await waitFor(
    async () => {
      const seen = await look()
      if (!seen || seen.active === null) return true
      await client.query('select pg_terminate_backend($1)', [seen.active])
      return false
    },
    { boundMs: SLOT_FREE_BOUND_MS, everyMs: 100 },
  )
  if (free === null)
    throw fault('standby.slot_in_use', `slot "${slot}" is in use`, {
      detail: 'Something connects with it again and again.',
      hint: 'Stop the standby that uses it.',
    })
  if (await look()) await client.query('select pg_drop_replication_slot($1)', [slot])
  return true
}
