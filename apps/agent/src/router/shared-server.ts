import type { AgentHandlers } from '@floe/agent-contract'
import type { Instances } from '../engine/instances'
import { readSharedServer } from '../engine/shared-server/shared-server'

/** A question has 3 s in all. */
const STATEMENT_MS = 2_500

export const sharedServerHandlers = (instances: Instances): Pick<AgentHandlers, 'readSharedServer'> => ({
  async readSharedServer({ instanceId }) {
    const instance = instances.get(instanceId)
    return {
      sharedServer: await instance.connect(
        (client) =>
          readSharedServer(async (sql) => (await client.query(sql)).rows, instance.postmaster?.pid ?? null),
        STATEMENT_MS,
      ),
      observedAt: Date.now(),
    }
  },
})
