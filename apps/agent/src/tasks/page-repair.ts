import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { scramVerifier } from '@floe/agent-contract'
import { fault, repairRoleOf } from '@floe/domain'
import pg from 'pg'
import {
  readClusterHbaRoles,
  readClusterSettings,
  repairConninfo,
  writeClusterHba,
  writeClusterSettings,
  writeRepairPassFile,
} from '../engine/cluster-files'
import type { Instance } from '../engine/instance'
import { makeOuterDirectory } from '../host/durable-files'
import { withPrimarySession } from './admit-standby'
import { reload } from './reload-instance'
import { requireTls } from './require-tls'
import { type TaskBody, type TaskContext, waitFor } from './task'

const SETTING = 'polar_page_repair_sources'
/** The one role that may read pages; members' own roles are members of it. */
const GROUP = 'page_repair'
const IN_FORCE_BOUND_MS = 5_000

/** Sees to the password that this member asks for pages with: made here, kept here, known elsewhere by its verifier. */
export const preparePageRepair: TaskBody<'prepare-page-repair'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { layout, registered } = instance
  if (!existsSync(extensionFile(instance))) throw missingModule(instance)
  makeOuterDirectory(layout.directory, context.user)
  const password = registered.repairPassword ?? randomBytes(24).toString('base64url')
  context.registry.update(task.instanceId, { repairPassword: password })
  writeRepairPassFile(layout, repairRoleOf(registered.name), password, context.user)
  return { repairVerifier: scramVerifier(password) }
}

const extensionFile = (instance: Instance) =>
  join(instance.enginePrefix, 'share/postgresql/extension/page_repair.control')

const missingModule = (instance: Instance) =>
  fault('page_repair.missing', `the engine of instance "${instance.registered.name}" has no page_repair`, {
    hint: 'Update the engine by "./floe up", then restart the instance.',
  })

/** Extension, group and one role for each member, on the primary; roles of who is no member any more go. */
export const admitPageRepair: TaskBody<'admit-page-repair'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  if (!existsSync(extensionFile(instance))) throw missingModule(instance)
  return withPrimarySession(instance, async (client) => {
    const { rows } = await client.query<{ role: string; standby: boolean }>(
      `select rolname as role, pg_is_in_recovery() as standby from pg_roles
        where rolname = $1 or rolname like 'floe\\_repair\\_%' or rolname = 'pg_monitor'`,
      [GROUP],
    )
    if (rows.some((r) => r.standby))
      throw fault('instance.is_standby', 'roles are made on the primary only', {
        detail: `Instance "${instance.registered.name}" is in recovery.`,
      })
    const known = new Set(rows.map((r) => r.role))
    const wanted = new Set(task.members.map((m) => repairRoleOf(m.name)))
    await client.query('begin')
    if (task.members.length > 0) await defineGroup(client, known.has(GROUP))
    for (const { name, verifier } of task.members)
      if (verifier) await defineMember(client, repairRoleOf(name), verifier, known)
    const dropped = [...known].filter((role) => role.startsWith('floe_repair_') && !wanted.has(role))
    for (const role of dropped) await client.query(`DROP ROLE ${pg.escapeIdentifier(role)}`)
    await client.query('commit')
    if (task.members.length > 0)
      context.log(`${task.members.map((m) => `"${repairRoleOf(m.name)}"`).join(', ')} may read pages`)
    for (const role of dropped) context.log(`dropped role "${role}"`)
    return { dropped: dropped.length }
  })
}

async function defineGroup(client: pg.Client, exists: boolean): Promise<void> {
  await client.query('CREATE EXTENSION IF NOT EXISTS page_repair')
  if (!exists) await client.query(`CREATE ROLE ${GROUP} NOLOGIN`)
  await client.query(`GRANT EXECUTE ON FUNCTION pg_catalog.polar_page_repair_read TO ${GROUP}`)
  await client.query(
    `COMMENT ON ROLE ${GROUP} IS 'May read any page, to repair those that a crash tore; made by Floe'`,
  )
}

async function defineMember(
  client: pg.Client,
  role: string,
  verifier: string,
  known: ReadonlySet<string>,
): Promise<void> {
  const name = pg.escapeIdentifier(role)
  await client.query(
    `${known.has(role) ? 'ALTER' : 'CREATE'} ROLE ${name} LOGIN INHERIT PASSWORD ${pg.escapeLiteral(verifier)}`,
  )
  await client.query(`GRANT ${GROUP} TO ${name}`)
  await client.query(`COMMENT ON ROLE ${name} IS 'A member asks for pages as this role; made by Floe'`)
}

/** Writes whom this member takes pages from and who may ask it, and sees both in force where it runs. */
export const setPageRepairSources: TaskBody<'set-page-repair-sources'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { layout } = instance
  if (!existsSync(layout.dataDirectory))
    throw fault('instance.no_data_directory', 'the instance has no data directory')
  const own = { ...instance.asking, passFile: layout.repairPassFile }
  const value = task.sources.map((source) => repairConninfo(source, own)).join('; ')
  const roles = [
    ...readClusterHbaRoles(layout).filter((role) => !role.startsWith('floe_repair_')),
    ...task.members.map(repairRoleOf),
  ]
  await instance.look()
  if (!instance.postmaster) {
    if (value && !existsSync(extensionFile(instance))) throw missingModule(instance)
    write(instance, value, roles, context)
    context.log('it is not running; it takes them when it starts')
    return { inForce: false }
  }
  return instance.connect(async (client) => {
    const shown = await show(client)
    if (shown === null) {
      if (value) throw missingModule(instance)
      return { inForce: true }
    }
    if (task.members.length > 0) await requireTls(instance, client)
    write(instance, value, roles, context)
    await reload(instance, client)
    const inForce = await waitFor(async () => (await show(client)) === value, {
      boundMs: IN_FORCE_BOUND_MS,
      everyMs: 20,
    })
    if (!inForce)
      throw fault('page_repair.overridden', `setting "${SETTING}" is set elsewhere`, {
        detail: 'What Floe wrote is not in force after a reload.',
        hint: `Run ALTER SYSTEM RESET ${SETTING}, and remove lines after the include of floe.conf.`,
      })
    context.log(
      task.sources.length > 0
        ? `torn pages are taken from ${task.sources.map((s) => `"${s.name}"`).join(', ')}`
        : 'torn pages are taken from nobody',
    )
    return { inForce: true }
  })
}

function write(instance: Instance, value: string, roles: readonly string[], context: TaskContext): void {
  const settings = readClusterSettings(instance.layout)
  if (value) settings.set(SETTING, value)
  else settings.delete(SETTING)
  writeClusterSettings(instance.layout, settings, context.user)
  writeClusterHba(instance.layout, roles, context.user)
}

/** The value in force; null for an engine without the module. */
async function show(client: pg.Client): Promise<string | null> {
  const { rows } = await client.query<{ value: string }>(
    'select setting as value from pg_settings where name = $1',
    [SETTING],
  )
  return rows[0]?.value ?? null
}
