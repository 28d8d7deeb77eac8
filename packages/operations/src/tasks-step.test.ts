import type { TaskKey } from '@floe/agent-contract'
import { fault } from '@floe/domain'
import { expect, test } from 'vitest'
import { PATIENCE } from './patience'
import type { MemberTask, StepContext } from './step'
import { tasksStep } from './tasks-step'

const task = (id: string): MemberTask => ({
  id,
  hostId: id,
  hostName: `h-${id}`,
  task: { kind: 'isolate-standby', instanceId: '00000000-0000-4000-8000-000000000002' as never },
})

/** One pass over a step that asks these members; `answers` by id, after how many ms. */
async function pass(
  answers: Record<string, { afterMs: number; state: string } | 'nothing' | 'unreachable'>,
  { toleranceMs, startedMsAgo = 0 }: { toleranceMs: number; startedMsAgo?: number },
) {
  const step = tasksStep<'failover-cluster'>({
    deadlineMs: 60_000,
    tasks: () => Object.keys(answers).map(task),
    optional: () => true,
    toleranceMs,
  })
  const ask = (hostId: string) => async (_: { key: TaskKey }) => {
    const answer = answers[hostId]
    if (answer === 'unreachable') throw fault('agent.unreachable', 'no answer')
    if (answer === 'nothing' || !answer) return new Promise<never>(() => {})
    await new Promise((resolve) => setTimeout(resolve, answer.afterMs))
    return { state: answer.state, log: [], result: {}, fault: null }
  }
  return step.run({
    operationId: 'o',
    step: { name: 'fence', attempt: 1, startedAt: new Date(10_000 - startedMsAgo), taskLogSeq: 0 },
    now: new Date(10_000),
    atWorkSince: new Date(0),
    patience: PATIENCE,
    cancelAskedAt: null,
    readCluster: async () => ({ members: [] }),
    agentOf: (hostId: string) => ({ checkTask: ask(hostId), startTask: ask(hostId) }),
  } as unknown as StepContext<'failover-cluster'>)
}

test('who is waited for only a moment holds nobody up for as long as a question may take', async () => {
  const outcome = await pass({ one: 'nothing', two: { afterMs: 0, state: 'succeeded' } }, { toleranceMs: 50 })
  expect(outcome).toMatchObject({
    word: 'next',
    result: {
      one: { fault: { code: 'agent.unreachable', message: 'host "h-one" does not answer' } },
      two: {},
    },
  })
})

test('one that answers is waited for as long as its task runs', async () => {
  const running = { one: { afterMs: 5, state: 'running' } }
  expect(await pass(running, { toleranceMs: 500, startedMsAgo: 5_000 })).toMatchObject({ word: 'wait' })
})

test('a host that is waited for longer is asked again until then', async () => {
  expect(await pass({ one: 'unreachable' }, { toleranceMs: 15_000, startedMsAgo: 9_000 })).toMatchObject({
    word: 'wait',
  })
  expect(await pass({ one: 'unreachable' }, { toleranceMs: 5_000, startedMsAgo: 9_000 })).toMatchObject({
    word: 'next',
    result: { one: { fault: { code: 'agent.unreachable' } } },
  })
})
