import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { scramVerifier } from '@floe/authority/scram-verifier'
import { fault, foreseeableLogin, isForeseeable, newLogin } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type pg from 'pg'
import {
  readClusterSettings,
  repairConninfo,
  writeClusterHba,
  writeClusterSettings,
  writeRepairPassFile,
} from '../engine/cluster-files'
import type { Instance } from '../engine/instance'
import {
  defineMemberRole,
  formerRepairRoles,
  retireFormerGroup,
  retireMemberRole,
  roleExists,
  withRolesLocked,
} from '../engine/member-roles'
import { makeOuterDirectory } from '../host/owned-files'
import { isThere } from '../host/tree'
import { withPrimarySession } from './admit-standby'
import { reload } from './reload-instance'
import { serveTls } from './serve-tls'
import type { TaskBody, TaskContext } from './task'

const SETTING = 'polar_page_repair_sources'
const IN_FORCE_BOUND_MS = 5_000

/** Sees to role and password that this member asks for pages with: made up and kept here, the password known elsewhere by its verifier. */
export const preparePageRepair: TaskBody<'prepare-page-repair'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { layout, registered } = instance
  if (!existsSync(extensionFile(instance))) throw missingModule(instance)
  makeOuterDirectory(layout.directory, instance.user)
  const password = registered.repairPassword ?? randomBytes(24).toString('base64url')
  const role = registered.repairRole ?? newLogin('repair', registered.name, randomBytes(8).toString('hex'))
  context.registry.update(task.instanceId, { repairPassword: password, repairRole: role })
  writeRepairPassFile(layout, [role, foreseeableLogin('repair', registered.name)], password, instance.user)
  return { repairVerifier: scramVerifier(password), repairRole: role }
}

const extensionFile = (instance: Instance) =>
  join(instance.enginePrefix, 'share/postgresql/extension/page_repair.control')

const missingModule = (instance: Instance) =>
  fault('page_repair.missing', `the engine of instance "${instance.registered.name}" has no page_repair`, {
    hint: 'Update the engine by "./floe up", then restart the instance.',
  })

/** Extension and one role for each member, on the primary; roles of who is no member any more go. */
export const admitPageRepair: TaskBody<'admit-page-repair'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  if (!existsSync(extensionFile(instance))) throw missingModule(instance)
  return withPrimarySession(instance, async (client) => {
    const { rows } = await client.query<{ standby: boolean }>('select pg_is_in_recovery() as standby')
    if (rows[0]?.standby)
      throw fault('instance.is_standby', 'roles are made on the primary only', {
        detail: `Instance "${instance.registered.name}" is in recovery.`,
      })
    const members = task.members.map((m) => ({ ...m, role: m.role ?? foreseeableLogin('repair', m.name) }))
    const dropped = await withRolesLocked(client, async () => {
      if (members.length > 0) await client.query('CREATE EXTENSION IF NOT EXISTS page_repair')
      for (const { name, role, verifier } of members)
        if (verifier) await defineUnlessKept(client, name, role, verifier, context)
      // a member of an earlier version that was not reached has its right from the group still
      const renewed = members.every(({ name, role }) => !isForeseeable(role, name))
      const former = await formerRepairRoles(client, new Set(members.map((m) => m.role)))
      let gone = 0
      for (const role of former) if (await retireMemberRole(client, role, context.log)) gone += 1
      if (renewed) await retireFormerGroup(client, context.log)
      return gone
    })
    if (members.length > 0) context.log(`${members.map((m) => `"${m.role}"`).join(', ')} may read pages`)
    return { dropped }
  })
}

/** A role that an agent of an earlier version asks as stays what it is; the hint is to update that host. */
async function defineUnlessKept(
  client: pg.Client,
  name: string,
  role: string,
  verifier: string,
  { log }: Pick<TaskContext, 'log'>,
): Promise<void> {
  if (isForeseeable(role, name) && (await roleExists(client, role)))
    log(`role "${role}" is left as it is: the agent of its host is of an earlier version`)
  else await defineMemberRole(client, role, verifier)
}

/** Writes whom this member takes pages from and who may ask it, and sees both in force where it runs. */
export const setPageRepairSources: TaskBody<'set-page-repair-sources'> = async (task, context) => {
  const instance = context.instances.get(task.instanceId)
  const { layout } = instance
  if (!isThere(layout.dataDirectory))
    throw fault('instance.no_data_directory', 'the instance has no data directory')
  const role = instance.registered.repairRole ?? foreseeableLogin('repair', instance.registered.name)
  const own = { ...instance.asking, passFile: layout.repairPassFile, role }
  const value = task.sources.map((source) => repairConninfo(source, own)).join('; ')
  const roles =
    task.roles ??
    task.members.flatMap((name) => [foreseeableLogin('standby', name), foreseeableLogin('repair', name)])
  await instance.look()
  if (!instance.postmaster) {
    if (value && !existsSync(extensionFile(instance))) throw missingModule(instance)
    write(instance, value, roles)
    context.log('it is not running; it takes them when it starts')
    return { inForce: false }
  }
  return instance.connect(async (client) => {
    const shown = await show(client)
    if (shown === null) {
      if (value) throw missingModule(instance)
      return { inForce: true }
    }
    if (task.members.length > 0) await serveTls(instance, client)
    write(instance, value, roles)
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
        : 'no page repair source',
    )
    return { inForce: true }
  })
}

function write(instance: Instance, value: string, roles: readonly string[]): void {
  const settings = readClusterSettings(instance.layout)
  if (value) settings.set(SETTING, value)
  else settings.delete(SETTING)
  writeClusterSettings(instance.layout, settings, instance.user)
  writeClusterHba(instance.layout, roles, instance.user)
}

/** The value in force; null for an engine without the module. */
async function show(client: pg.Client): Promise<string | null> {
  const { rows } = await client.query<{ value: string }>(
    'select setting as value from pg_settings where name = $1',
    [SETTING],
  )
  return rows[0]?.value ?? null
}
