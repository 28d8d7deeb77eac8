import type { AgentHandlers } from '@floe/agent-contract'
import type { Instances } from '../engine/instances'

export const checkpointHandlers = (instances: Instances): Pick<AgentHandlers, 'readCheckpoints'> => ({
  readCheckpoints: async ({ instanceId, afterSeq, limit, afterStallSeq }) => {
    const { sampler } = instances.get(instanceId)
    return {
      ...sampler.readCheckpoints(afterSeq, limit),
      ...sampler.readStalls(afterStallSeq ?? null, limit),
    }
  },
})
