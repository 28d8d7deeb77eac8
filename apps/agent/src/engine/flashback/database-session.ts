import { FaultError, fault } from '@floe/domain'
import type pg from 'pg'
import { connectEngine, type EngineAddress, sqlState } from '../process/connection'
import { quietSettings } from '../process/quiet-settings'
import { undisturbedSettings } from '../process/undisturbed-settings'

/** A lock of somebody else is waited for so long; behind one that waits, others wait too. */
const LOCK_WAIT = '30s'

const settings = {
  ...undisturbedSettings,
  lock_timeout: LOCK_WAIT,
  // rows are no matter for the server's log, nor are the keys of those that somebody has selected
  ...quietSettings,
}

/** A session in a database of an instance; throws `database.not_found` or `instance.no_connection`. */
export async function connectDatabase(
  address: EngineAddress,
  database: string,
  statementMs: number,
): Promise<pg.Client> {
  try {
    return await connectEngine(
      { ...address, database },
      { applicationName: 'floe agent task', connectMs: 5_000, statementMs, settings },
    )
  } catch (error) {
    // invalid_catalog_name
    if (sqlState(error) === '3D000')
      throw fault('database.not_found', `database "${database}" does not exist`, { cause: error })
    if (error instanceof FaultError) throw error
    throw fault('instance.no_connection', 'could not connect to the instance', {
      detail: error instanceof Error ? error.message : String(error),
      cause: error,
    })
  }
}

/** Runs something in a database over a session of its own. */
export async function inDatabase<T>(
  address: EngineAddress,
  database: string,
  run: (client: pg.Client) => Promise<T>,
  statementMs: number,
): Promise<T> {
  const client = await connectDatabase(address, database, statementMs)
  try {
    return await run(client)
  } finally {
    await client.end().catch(() => {})
  }
}
