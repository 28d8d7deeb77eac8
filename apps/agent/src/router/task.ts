import type { AgentHandlers } from '@floe/agent-contract'
import type { TaskRunner } from '../tasks/runner/runner'

export const taskHandlers = (
  tasks: TaskRunner,
): Pick<AgentHandlers, 'startTask' | 'checkTask' | 'cancelTask'> => ({
  startTask: async (input) => tasks.start(input),
  checkTask: async (input) => tasks.check(input.key, input.afterLogSeq),
  cancelTask: async (key) => tasks.cancel(key),
})
