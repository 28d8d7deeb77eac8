import type pg from 'pg'
import type { Instance } from '../instance'
import { reload } from '../process/reload'
import { writeClusterHba } from './member-files'

/** The lines of pg_hba.conf for the members' roles. */
export async function letIn(instance: Instance, client: pg.Client, roles: readonly string[]): Promise<void> {
  if (writeClusterHba(instance.layout, roles, instance.user)) await reload(instance, client)
}
