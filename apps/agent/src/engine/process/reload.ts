import { fault } from '@floe/domain'
import { waitFor } from '@floe/host/wait'
import type pg from 'pg'
import type { Instance } from '../instance'
import configurationLoadedSql from '../sql/configuration-loaded.sql'

const RELOAD_BOUND_MS = 10_000

/**
 * Makes the engine read its configuration and waits until it has. The postmaster reads first and then tells the
 * sessions, so what this session has read the postmaster has too.
 */
export async function reload(instance: Instance, client: pg.Client): Promise<void> {
  const loaded = async () =>
    Number((await client.query<{ loaded: number }>(configurationLoadedSql)).rows[0]?.loaded)
  const postmaster = instance.postmaster
  if (!postmaster) throw fault('instance.not_running', 'the instance is not running')
  const before = await loaded()
  process.kill(postmaster.pid, 'SIGHUP')
  const moved = await waitFor(async () => (await loaded()) > before, {
    boundMs: RELOAD_BOUND_MS,
    everyMs: 10,
  })
  if (moved === null)
    throw fault('instance.not_reloaded', 'the engine did not read its configuration within 10 s', {
      hint: 'Its log says why.',
    })
}
