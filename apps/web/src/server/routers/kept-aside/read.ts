import { operatorProcedure } from '../../procedures'
import { KeptAsideRead, KeptAsideReadInput } from './kept-aside.types'

/** A piece of what was kept aside, decoded by the engine's own reader; a probe, within 3 s. */
export const read = operatorProcedure
  .input(KeptAsideReadInput)
  .output(KeptAsideRead)
  .query(({ ctx, input }) =>
    ctx.ports.agents.probe(input.instanceId, (trpc) => trpc.keptAside.read.query(input)),
  )
