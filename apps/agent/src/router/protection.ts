import type { AgentHandlers } from '@floe/agent-contract'
import type { Instances } from '../engine/instances'
import { readProtection } from '../engine/page-repair/protection'

export const protectionHandlers = (instances: Instances): Pick<AgentHandlers, 'readProtection'> => ({
  readProtection: async ({ instanceId }) => ({
    protection: await instances
      .get(instanceId)
      .connect((client) => readProtection(async (sql) => (await client.query(sql)).rows)),
    observedAt: Date.now(),
  }),
})
