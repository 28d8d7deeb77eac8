import type { AgentHandlers } from '@floe/agent-contract'
import { readFlashbackLog, readFlashbackPoints } from '../engine/flashback/flashback-log'
import type { Instances } from '../engine/instances'

export const flashbackHandlers = (instances: Instances): Pick<AgentHandlers, 'readFlashback'> => ({
  readFlashback: async ({ instanceId }) =>
    instances.get(instanceId).connect(async (client) => {
      const ask = async (sql: string) => (await client.query(sql)).rows
      return {
        log: await readFlashbackLog(ask),
        points: await readFlashbackPoints(ask),
        observedAt: Date.now(),
      }
    }),
})
