import { listHosts } from '@floe/db'
import type { HostId } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { ms } from '../operation/operation.views'
import { HostList } from './list.types'

/** All hosts by name, as last observed. */
export const list = viewerProcedure.output(HostList).query(async ({ ctx }) => {
  const hosts = await listHosts(ctx.ports.database.pool)
  return {
    hosts: hosts.map(({ createdAt, ...host }) => ({
      ...host,
      hostId: host.hostId as HostId,
      observedAt: ms(host.observedAt),
      // not known before its agent answered for the first time
      capabilities: host.capabilities ?? [],
    })),
    now: Date.now(),
  }
})
