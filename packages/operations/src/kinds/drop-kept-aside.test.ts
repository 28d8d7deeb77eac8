import { operationRecord } from '@floe/domain'
import { expect, test } from 'vitest'
import { dropKeptAside } from './drop-kept-aside'

test('the agent is asked for the one that was named, and the audit log names the verb', async () => {
  const asked: unknown[] = []
  const status = { state: 'running', log: [], message: null, progress: null }
  await dropKeptAside.steps.drop.run({
    operationId: 'o',
    input: { instanceId: 'i', keptAside: 'kept-aside-20260101T000000000Z-1', confirmName: 'one' },
    step: { name: 'drop', attempt: 1, startedAt: new Date(), taskLogSeq: 0 },
    results: {},
    now: new Date(),
    cancelAskedAt: null,
    agent: {
      checkTask: async () => (asked.length === 0 ? { ...status, state: 'not-started' } : status),
      startTask: async ({ task }: { task: unknown }) => {
        asked.push(task)
        return status
      },
    },
  } as never)
  expect(asked).toEqual([
    { kind: 'drop-kept-aside', instanceId: 'i', name: 'kept-aside-20260101T000000000Z-1' },
  ])
  expect(operationRecord('drop-kept-aside').action).toBe('instance.drop_kept_aside')
})
