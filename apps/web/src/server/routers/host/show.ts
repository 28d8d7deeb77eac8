import { findHost, hostNotFound, listInstances, showHost, showHostCheck } from '@floe/db'
import type { InstanceId } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { ms } from '../operation/operation.views'
import { HostDetail, HostShowInput } from './host.types'
import { hostCheckShown, hostSummary } from './host.views'

/** One host by id or name with its instances, as last observed. Throws `host.not_found`. */
export const show = viewerProcedure
  .input(HostShowInput)
  .output(HostDetail)
  .query(async ({ ctx, input }) => {
    const { database, files } = ctx.ports
    const host =
      'hostId' in input
        ? await showHost(database.pool, input.hostId)
        : await findHost(database.pool, input.name)
    if (!host) throw hostNotFound('hostId' in input ? input.hostId : input.name)
    const instances = await listInstances(database.pool, { hostId: host.hostId })
    return {
      host: hostSummary(host, files.installation.hostId),
      check: hostCheckShown(await showHostCheck(database.pool, host.hostId)),
      instanceList: instances.map((i) => ({
        instanceId: i.instanceId as InstanceId,
        name: i.name,
        state: i.state,
        lastState: i.lastState,
        role: i.role,
        port: i.port,
        engineVersion: i.engineVersion,
        engine: i.engine,
        observedAt: ms(i.observedAt),
      })),
      now: Date.now(),
    }
  })
