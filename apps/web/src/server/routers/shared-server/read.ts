import { FaultError, fault } from '@floe/domain'
import { viewerProcedure } from '../../procedures'
import { SharedServerRead, SharedServerReadInput } from './shared-server.types'

/** Sessions, workers and pools of an instance's Shared Server, and why sessions are pinned; a probe, within 3 s. */
export const read = viewerProcedure
  .input(SharedServerReadInput)
  .output(SharedServerRead)
  .query(async ({ ctx, input }) => {
    try {
      return await ctx.ports.agents.probe(input.instanceId, (trpc) => trpc.sharedServer.read.query(input))
    } catch (error) {
      if (error instanceof FaultError && error.fault.code === 'agent.not_found')
        throw fault('agent.older', 'the agent of the instance’s host is of an earlier version', {
          detail: 'It does not know Shared Server, so nothing can be said of shared sessions.',
          hint: 'Run "git pull" and "./floe up" on that host, on an enrolled one "./floe agent start".',
        })
      throw error
    }
  })
