import { fault } from '@floe/domain'
import type pg from 'pg'
import type { Instance } from '../instance'

/** Throws `instance.is_standby` where roles cannot be made. */
export async function refuseStandby(instance: Instance, client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ standby: boolean }>('select pg_is_in_recovery() as standby')
  if (rows[0]?.standby)
    throw fault('instance.is_standby', 'roles are made on the primary only', {
      detail: `Instance "${instance.registered.name}" is in recovery.`,
    })
}

/** A commit of such a session that no standby has confirmed for so long is not waited for. */
const UNCONFIRMED = '2 seconds'
const AGAIN = 3

/**
 * A session whose own commits wait for no standby: what it changes is needed to bring standbys back, and must not hang
 * while they are away. Where a commit floor has it wait all the same, the session is ended: its commit is there, and nobody
 * was told so. What it was to do is then done again, for which `run` must change nothing that is as it should be.
 */
export async function withPrimarySession<T>(
  instance: Instance,
  run: (client: pg.Client) => Promise<T>,
): Promise<T> {
  for (let again = 0; ; again++) {
    let ended = Promise.resolve(false)
    const attempt = instance.connect(async (client) => {
      await client.query('set synchronous_commit to local')
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
      const looking = setInterval(() => {
        // one after the other; where one fails, the next may succeed
        ended = ended.then(
          async (did) => did || (await endUnconfirmed(instance, rows[0]?.pid ?? 0).catch(() => false)),
        )
      }, 1_000)
      try {
        return await run(client)
      } finally {
        clearInterval(looking)
      }
    }, 30_000)
    try {
      return await attempt
    } catch (error) {
      // the session may know of its end before the one that ended it
      if (!(await ended) || again === AGAIN) throw error
    }
  }
}

/** Ends such sessions, also one that an agent before this one left behind with its locks; answers whether `pid` was one. */
const endUnconfirmed = (instance: Instance, pid: number): Promise<boolean> =>
  instance.connect(async (client) => {
    const { rows } = await client.query<{ pid: number }>(
      `select pid, pg_terminate_backend(pid) from pg_stat_activity
        where usename = current_user and application_name = current_setting('application_name')
          and wait_event = 'SyncRep' and clock_timestamp() - query_start > $1::interval`,
      [UNCONFIRMED],
    )
    return rows.some((row) => row.pid === pid)
  })
