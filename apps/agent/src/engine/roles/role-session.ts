import { AGENT_ROLE, fault } from '@floe/domain'
import type pg from 'pg'
import { connectEngine, type EngineAddress } from '../process/connection'
import { quietSettings } from '../process/quiet-settings'
import { undisturbedSettings } from '../process/undisturbed-settings'

/**
 * Settings of a session that reads or changes roles. They come with the connection, so they win over those of ALTER ROLE and
 * ALTER DATABASE, by which a superuser of the instance could have the session log its statements or act as somebody else.
 *
 * **Claim.** A verifier of a password is seen in no log, no view of activity and no view of statements.
 * **Because.** Nothing but the end of the session is logged, activities and statements are not tracked, and no code of users runs
 * in it: role commands fire no event triggers, and that of a login is turned off.
 * **Test.** apps/agent/test/database-roles.test.ts
 */
const settings = {
  ...undisturbedSettings,
  ...quietSettings,
  event_triggers: 'off',
  track_activities: 'off',
  'pg_stat_statements.track': 'none',
  'pg_stat_statements.track_utility': 'off',
  session_authorization: AGENT_ROLE,
  role: 'none',
  // warnings are read here, in the words that PostgreSQL's documentation has
  client_min_messages: 'warning',
  lc_messages: 'C',
}

/** Runs something in such a session; `warned` is called with what the engine warns of. */
export async function withRoleSession<T>(
  address: EngineAddress,
  run: (client: pg.Client) => Promise<T>,
  { statementMs, warned }: { statementMs: number; warned?: (text: string) => void },
): Promise<T> {
  let client: pg.Client
  try {
    client = await connectEngine(address, {
      applicationName: 'floe agent roles',
      connectMs: Math.min(5_000, statementMs),
      statementMs,
      settings,
    })
  } catch (error) {
    throw fault('instance.no_connection', 'could not connect to the instance', {
      detail: error instanceof Error ? error.message : String(error),
      cause: error,
    })
  }
  if (warned) client.on('notice', ({ message }) => warned((message ?? '').slice(0, 500)))
  try {
    const { rows } = await client.query<{ acts: string; came: string }>(
      'select current_user::text as acts, session_user::text as came',
    )
    if (rows[0]?.acts !== AGENT_ROLE || rows[0].came !== AGENT_ROLE)
      throw fault('role.other_user', `the instance has Floe act as another role than "${AGENT_ROLE}"`, {
        hint: `Look at the settings of that role: ALTER ROLE ${AGENT_ROLE} RESET ALL.`,
      })
    return await run(client)
  } finally {
    await client.end().catch(() => {})
  }
}
