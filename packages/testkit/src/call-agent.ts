import { type AgentClient, createAgentClient } from '@floe/agent-contract/client'
import type { ThrowawayHome } from './throwaway-home'

export type { TaskInput, TaskStatus } from '@floe/agent-contract'

const CALL_MS = 15_000

/** Asks the agent of a home as its controller does, over a connection of its own: agents of such tests come and go. */
export async function callAgent<T>(
  home: ThrowawayHome,
  ask: (trpc: AgentClient['trpc']) => Promise<T>,
): Promise<T> {
  const client = createAgentClient({ ...home.endpoint('task'), timeoutMs: CALL_MS })
  try {
    return await ask(client.trpc)
  } finally {
    await client.close()
  }
}
