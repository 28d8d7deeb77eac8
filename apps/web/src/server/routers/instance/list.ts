import { listInstances, readSparklines } from '@floe/db'
import { viewerProcedure } from '../../procedures'
import { InstanceList, InstanceListInput } from './instance.types'
import { instanceSummary } from './instance.views'

/** All instances by name, as last observed, with the TPS of the last minute. */
export const list = viewerProcedure
  .input(InstanceListInput)
  .output(InstanceList)
  .query(async ({ ctx, input }) => {
    const { pool } = ctx.ports.database
    const search = input.search?.trim().toLowerCase() ?? ''
    const instances = (await listInstances(pool)).filter(
      (i) =>
        i.name.includes(search) || i.host.name.toLowerCase().includes(search) || String(i.port) === search,
    )
    const sparklines = await readSparklines(pool, { instanceIds: instances.map((i) => i.instanceId) })
    const tps = new Map(sparklines.map((s) => [s.instanceId, s.points]))
    return {
      instances: instances.map((i) => instanceSummary(i, tps.get(i.instanceId) ?? [])),
      now: Date.now(),
    }
  })
