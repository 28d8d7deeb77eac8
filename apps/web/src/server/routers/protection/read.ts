import { viewerProcedure } from '../../procedures'
import { ProtectionRead, ProtectionReadInput } from './read.types'

/** What protects an instance against torn pages at this moment; a probe, within 3 s. */
export const read = viewerProcedure
  .input(ProtectionReadInput)
  .output(ProtectionRead)
  .query(({ ctx, input: { instanceId } }) =>
    ctx.ports.agents.probe(instanceId, (trpc) => trpc.protection.read.query({ instanceId })),
  )
