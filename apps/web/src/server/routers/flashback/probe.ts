import type { AgentQuestions } from '@floe/agent-contract/client'
import { FaultError, fault, type InstanceId } from '@floe/domain'
import type { Context } from '../../context'

/** Asks an instance's agent about flashbacks; within 3 s. One of an earlier version says that it has to be updated. */
export async function probe<T>(
  ctx: Context,
  instanceId: InstanceId,
  ask: (flashback: AgentQuestions['flashback']) => Promise<T>,
): Promise<T> {
  try {
    return await ctx.ports.agents.probe(instanceId, (trpc) => ask(trpc.flashback))
  } catch (error) {
    if (error instanceof FaultError && error.fault.code === 'agent.not_found')
      throw fault('agent.older', 'the agent of the instance’s host is of an earlier version', {
        detail: 'It cannot flash back tables.',
        hint: 'Run "git pull" and "./floe up" on that host, on an enrolled one "./floe agent start".',
      })
    throw error
  }
}
