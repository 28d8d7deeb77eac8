import { fault } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type pg from 'pg'

const SLOT_FREE_BOUND_MS = 15_000

/** Creates a physical slot that retains WAL from now on; one that has lost its WAL is replaced. */
export async function ensureSlot(client: pg.Client, slot: string): Promise<void> {
  const { rows } = await client.query<{ lost: boolean }>(
    `select coalesce(wal_status = 'lost', true) and not active as lost from pg_replication_slots where slot_name = $1`,
    [slot],
  )
  if (rows[0] && !rows[0].lost) return
  if (rows[0]) await client.query('select pg_drop_replication_slot($1)', [slot])
  await client.query('select pg_create_physical_replication_slot($1, true)', [slot])
}

/** Drops a slot, ending who uses it; false where there is none. */
export async function dropSlot(client: pg.Client, slot: string): Promise<boolean> {
  const look = async () =>
    (
      await client.query<{ active: number | null }>(
        'select active_pid as active from pg_replication_slots where slot_name = $1',
        [slot],
      )
    ).rows[0]
  if (!(await look())) return false
  const free = await waitFor(
    async () => {
      const seen = await look()
      if (!seen || seen.active === null) return true
      await client.query('select pg_terminate_backend($1)', [seen.active])
      return false
    },
    { boundMs: SLOT_FREE_BOUND_MS, everyMs: 100 },
  )
  if (free === null)
    throw fault('standby.slot_in_use', `slot "${slot}" is in use`, {
      detail: 'Something connects with it again and again.',
      hint: 'Stop the standby that uses it.',
    })
  if (await look()) await client.query('select pg_drop_replication_slot($1)', [slot])
  return true
}
