import { FaultError } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { KeptAsideList, KeptAsideListInput } from './kept-aside.types'

/** Procedures that an agent of an earlier version does not have. */
const isOlder = (error: unknown) => error instanceof FaultError && error.fault.code === 'agent.not_found'

/** What was kept aside at rejoins of an instance, by its agent; a probe, within 3 s. */
export const list = viewerProcedure
  .input(KeptAsideListInput)
  .output(KeptAsideList)
  .query(async ({ ctx, input }) => {
    try {
      return await ctx.ports.agents.probe(input.instanceId, (trpc) => trpc.keptAside.list.query(input))
    } catch (error) {
      if (isOlder(error)) return { keptAside: null }
      throw error
    }
  })
