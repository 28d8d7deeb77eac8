import { Setting } from '@floe/domain'
import type pg from 'pg'
import type { InstanceLayout } from '../directory/layout'
import settingsSql from '../sql/settings.sql'
import { readManagedSettings } from './managed-file'

/** The catalogue of a running instance by lower-case name, all of it or some names. */
export async function readSettings(
  client: pg.Client,
  layout: InstanceLayout,
  names?: readonly string[],
): Promise<Map<string, Setting>> {
  const managed = readManagedSettings(layout.managedFile)
  const wanted = names ? names.map((n) => n.toLowerCase()) : null
  const r = await client.query<Omit<Setting, 'managedValue'>>(settingsSql, [wanted])
  return new Map(
    r.rows.map((row) => {
      const key = row.name.toLowerCase()
      return [key, Setting.parse({ ...row, managedValue: managed.get(key) ?? null })]
    }),
  )
}
