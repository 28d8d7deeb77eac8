import { FaultError } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { FlashbackRead, FlashbackReadInput } from './flashback.types'

/** Procedures that an agent of an earlier version does not have. */
const isOlder = (error: unknown) => error instanceof FaultError && error.fault.code === 'agent.not_found'

/** The flashback log of one instance, and no other member's, with its points; a probe, within 3 s. */
export const read = viewerProcedure
  .input(FlashbackReadInput)
  .output(FlashbackRead)
  .query(async ({ ctx, input }) => {
    try {
      return await ctx.ports.agents.probe(input.instanceId, (trpc) => trpc.flashback.read.query(input))
    } catch (error) {
      if (isOlder(error)) return { log: null, points: [], sample: null, observedAt: Date.now() }
      throw error
    }
  })
