import type { AgentHandlers } from '@floe/agent-contract'
import { readCommitModes } from '../engine/cluster/commit-modes'
import type { Instances } from '../engine/instances'

export const commitModeHandlers = (instances: Instances): Pick<AgentHandlers, 'listCommitModes'> => ({
  listCommitModes: async ({ instanceId }) => ({
    commitModes: await instances.get(instanceId).connect(readCommitModes),
    observedAt: Date.now(),
  }),
})
