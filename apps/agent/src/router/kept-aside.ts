import type { AgentHandlers } from '@floe/agent-contract'
import type { Instances } from '../engine/instances'
import { listKeptAside, readKeptAside, told } from '../engine/wal/kept-aside'

export const keptAsideHandlers = (
  instances: Instances,
): Pick<AgentHandlers, 'listKeptAside' | 'readKeptAside'> => ({
  listKeptAside: async ({ instanceId }) => ({
    keptAside: listKeptAside(instances.get(instanceId)).map(told),
  }),
  readKeptAside: (input, signal) => readKeptAside(instances.get(input.instanceId), input, signal),
})
