import type { TaskInput } from '@floe/agent-contract'
import { InstanceId, operationRecords } from '@floe/domain'
import { expect, test } from 'vitest'
import type { StepContext } from '../step'
import { setStallLength } from './set-stall-length'

const instanceId = InstanceId.parse('0d8f2a9e-6c51-4a30-9f4e-1d2c3b4a5f60')

test.each([
  ['3s', 3_000],
  ['default', null],
])('a length of %s is one task of its agent', async (after, afterMs) => {
  expect(setStallLength.plan({ instanceId, after }, { state: 'running' }).map((s) => s.name)).toEqual(['set'])
  const ordered: TaskInput[] = []
  await setStallLength.steps.set.run({
    operationId: 'o',
    input: { instanceId, after },
    step: { name: 'set', attempt: 1, taskLogSeq: 0, startedAt: new Date(0) },
    cancelAskedAt: null,
    now: new Date(100),
    agent: {
      checkTask: async () => ({ state: ordered.length === 0 ? 'not-started' : 'running', log: [] }),
      startTask: async ({ task }: { task: TaskInput }) => void ordered.push(task),
    },
  } as unknown as StepContext<'set-stall-length'>)
  expect(ordered).toEqual([{ kind: 'set-stall-length', instanceId, afterMs }])
})

test('what counts from then on is told', () => {
  expect(operationRecords['set-stall-length'].order.command.done({ stallAfterMs: 3_000 })).toContain(
    'from 3.0 s on',
  )
})
