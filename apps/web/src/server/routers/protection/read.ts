import { readClusterOf } from '@floe/db'
import { viewerProcedure } from '../../procedures'
import { ProtectionRead, ProtectionReadInput } from './protection.types'
import { protectionView } from './protection.views'

/** What protects an instance against torn pages at this moment; a probe, within 3 s. */
export const read = viewerProcedure
  .input(ProtectionReadInput)
  .output(ProtectionRead)
  .query(async ({ ctx, input: { instanceId } }) => {
    const [seen, cluster] = await Promise.all([
      ctx.ports.agents.probe(instanceId, (trpc) => trpc.protection.read.query({ instanceId })),
      readClusterOf(ctx.ports.database.pool, instanceId),
    ])
    return { ...seen, protection: protectionView(cluster, instanceId, seen.protection) }
  })
