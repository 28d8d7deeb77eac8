import { fault, foreseeableLogin } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type pg from 'pg'
import { serveTls } from '../../engine/access/serve-tls'
import {
  readClusterSettings,
  repairConninfo,
  writeClusterHba,
  writeClusterSettings,
} from '../../engine/cluster/member-files'
import type { Instance } from '../../engine/instance'
import { hasPageRepair, missingPageRepair } from '../../engine/page-repair/extension'
import { reload } from '../../engine/process/reload'
import { isThere } from '../../host/tree'
import type { TaskBody } from '../runner/task'

const SETTING = 'polar_page_repair_sources'
const IN_FORCE_BOUND_MS = 5_000

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
    if (value && !hasPageRepair(instance)) throw missingPageRepair(instance)
    write(instance, value, roles)
    context.log('it is not running; it takes them when it starts')
    return { inForce: false }
  }
  return instance.connect(async (client) => {
    const shown = await show(client)
    if (shown === null) {
      if (value) throw missingPageRepair(instance)
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
