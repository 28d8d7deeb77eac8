import { waitFor } from '@floe/host/wait'
import type pg from 'pg'
import { letIn } from '../../engine/cluster/let-in'
import {
  abandonedStandbyRoles,
  endSessionsOfRetired,
  retireMemberRole,
  withRolesLocked,
} from '../../engine/cluster/member-roles'
import { refuseStandby, withPrimarySession } from '../../engine/cluster/primary-session'
import { NEW_ROLE_BOUND_MS } from '../../engine/cluster/streaming'
import type { TaskBody, TaskContext } from '../runner/task'

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
    { boundMs: NEW_ROLE_BOUND_MS, everyMs: 50, signal },
  )
