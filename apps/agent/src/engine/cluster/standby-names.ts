import { COMMIT_FLOOR, RECEIVER_TIMEOUT } from '@floe/domain'
import type pg from 'pg'
import type { Instance } from '../instance'
import { readClusterSettings, writeClusterSettings } from './member-files'

/** The value of synchronous_standby_names that this session sees. */
export async function namesInForce(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ names: string }>(
    `select current_setting('synchronous_standby_names') as names`,
  )
  return rows[0]?.names ?? ''
}

/** Settings of a cluster that fails over automatically, which one that leaves it keeps no longer. */
const ofAutomatic = [COMMIT_FLOOR, RECEIVER_TIMEOUT]

/** Writes whom commits wait for into the instance's settings of its cluster; a primary follows nobody. In force after a reload. */
export function writeNames(
  instance: Instance,
  names: string,
  as: 'standby' | 'primary' | 'on its own',
): void {
  const settings = readClusterSettings(instance.layout)
  if (names) settings.set('synchronous_standby_names', names)
  else settings.delete('synchronous_standby_names')
  if (as !== 'standby') {
    settings.delete('primary_conninfo')
    settings.delete('primary_slot_name')
  }
  if (as === 'on its own') for (const name of ofAutomatic) settings.delete(name)
  writeClusterSettings(instance.layout, settings, instance.user)
}
