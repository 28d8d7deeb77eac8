import type { AgentHandlers } from '@floe/agent-contract'
import type { Instances } from '../engine/instances'

export const checkpointHandlers = (instances: Instances): Pick<AgentHandlers, 'readCheckpoints'> => ({
  readCheckpoints: async ({ instanceId, afterSeq, limit }) =>
    instances.get(instanceId).sampler.readCheckpoints(afterSeq, limit),
})
