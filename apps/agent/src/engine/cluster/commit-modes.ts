import type { CommitModeScope } from '@floe/domain'
import type pg from 'pg'
import commitModesSql from '../sql/commit-modes.sql'

/** What synchronous_commit is set to for databases and roles, by the catalog: also what was set without Floe. */
export async function readCommitModes(client: pg.Client): Promise<CommitModeScope[]> {
  return (await client.query<CommitModeScope>(commitModesSql)).rows
}
