import { controlOf } from '../instance-control'
import { observeStep } from '../observe-step'
import { defineOperation } from '../step'
import { taskStep } from '../task-step'

/** A tree of very many files is handed over one by one. */
const DEADLINE_MS = 3_600_000

/** Gives an instance of an earlier version a user of its own. One that runs is restarted; one that is stopped stays so. */
export const separateInstance = defineOperation('separate-instance', {
  plan: (_input, observed) => [
    { name: 'separate' as const, title: 'Give its files to a user of its own' },
    ...(observed.state === 'running' ? [{ name: 'observe' as const, title: 'Wait until it runs' }] : []),
  ],
  steps: {
    separate: taskStep('separate-instance', {
      deadlineMs: DEADLINE_MS,
      on: () => null,
      task: ({ input }, cluster) => controlOf(cluster).separate(input.instanceId),
    }),
    observe: observeStep('running'),
  },
})
