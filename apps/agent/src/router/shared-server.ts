import type { AgentHandlers } from '@floe/agent-contract'
import { fault } from '@floe/domain'
import type { Instances } from '../engine/instances'
import { sqlState } from '../engine/process/connection'
import { readSharedServer } from '../engine/shared-server/shared-server'

/** A question has 3 s in all. */
const STATEMENT_MS = 2_500

/** The owner of the instance can replace the views, or remove them. */
function notTold(error: unknown): never {
  if (sqlState(error) === null) throw error
  throw fault('shared_server.not_told', 'the instance did not report which sessions share its backends', {
    detail: (error as Error).message,
    hint: 'Where its views were changed, drop and create the extension shared_server in its database postgres.',
    cause: error,
  })
}

export const sharedServerHandlers = (instances: Instances): Pick<AgentHandlers, 'readSharedServer'> => ({
  async readSharedServer({ instanceId }) {
    const instance = instances.get(instanceId)
    return {
      sharedServer: await instance
        .connect(
          (client) =>
            readSharedServer(
              async (sql) => (await client.query(sql)).rows,
              instance.postmaster?.pid ?? null,
              instance.heartbeats,
            ),
          STATEMENT_MS,
        )
        .catch(notTold),
      observedAt: Date.now(),
    }
  },
})
