import { fault } from '@floe/domain'
import type pg from 'pg'
import type { Instance } from '../instance'
import { reload } from '../process/reload'

/** Sees to it that members can reach this instance, which they do over TLS only. */
export async function serveTls(instance: Instance, client: pg.Client): Promise<void> {
  if (await servesTls(client)) return
  // one that an earlier version started, and whose agent was killed before it had reported it
  await instance.ensureServerCertificate()
  await reload(instance, client)
  if (await servesTls(client)) return
  throw fault('instance.no_tls', `instance "${instance.registered.name}" does not serve TLS`, {
    detail: 'Setting "ssl" is off. Members reach each other over TLS only.',
    hint: 'Reset it through the console, and remove lines of your own that turn it off.',
  })
}

async function servesTls(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ ssl: string }>(`select current_setting('ssl') as ssl`)
  return rows[0]?.ssl === 'on'
}
