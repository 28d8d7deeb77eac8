import type { TaskKey } from '@floe/agent-contract'
import { fault } from '@floe/domain'
import { expect, test } from 'vitest'
import { PATIENCE } from './patience'
import { fail, type OperationDefinition, type StepContext, type UndoTask } from './step'
import { undoSteps } from './undo'

const why = { code: 'setting.rolled_back', message: 'it did not start' }
const task = (id: string, more: Partial<UndoTask> = {}): UndoTask => ({
  id,
  after: 'change',
  hostId: 'h',
  hostName: `host-of-${id}`,
  task: { kind: 'reload-instance', instanceId: '00000000-0000-4000-8000-000000000000' as never },
  ...more,
})

/** Undoes with an agent that ends each task at once: as told, else well. */
async function run(
  tasks: UndoTask[],
  ends: Record<string, 'failed' | 'silent'>,
  members: { hostId: string; hostState: string; ageMs: number }[] = [],
) {
  const started: string[] = []
  const idOf = (key: TaskKey) => key.step.replace('undo.', '')
  const status = (id: string) => ({
    state: !started.includes(id) ? 'not-started' : ends[id] === 'failed' ? 'failed' : 'succeeded',
    fault: ends[id] === 'failed' ? { code: 'x', message: 'it would not' } : null,
    result: {},
  })
  const agent = {
    checkTask: async ({ key }: { key: TaskKey }) => {
      if (ends[idOf(key)] === 'silent') throw fault('agent.unreachable', 'no answer')
      return status(idOf(key))
    },
    startTask: async ({ key }: { key: TaskKey }) => {
      started.push(idOf(key))
      return status(idOf(key))
    },
  }
  const context = {
    operationId: '1',
    cancelAskedAt: null,
    now: new Date(60_000),
    atWorkSince: new Date(0),
    patience: PATIENCE,
    step: { startedAt: new Date(0) },
    readCluster: async () => ({ members }),
    agentOf: () => agent,
  } as unknown as StepContext
  const definition = { undo: () => tasks } as unknown as OperationDefinition<never>
  for (let pass = 0; pass < 20; pass++) {
    const outcome = await undoSteps(definition as never, context as never, ['change'], why, fail(why))
    if (outcome.word !== 'wait') return { outcome, started }
  }
  return { outcome: null, started }
}

test('what needs another one to be taken back first is not tried without it, and what stands where is said and recorded', async () => {
  const record = { kind: 'instance-deleted' as const }
  const { outcome, started } = await run(
    [
      task('set.b', { leaves: { words: '"b" may have n = 2', records: [record] } }),
      task('set.a', { needs: ['set.b'], leaves: { words: '"a" may have n = 2' } }),
      task('set.c'),
    ],
    { 'set.b': 'failed' },
  )
  expect(started).toEqual(['set.b', 'set.c'])
  expect(outcome).toMatchObject({
    word: 'fail',
    records: [record],
    fault: {
      code: 'setting.rolled_back',
      detail:
        'Could not be undone: reload-instance on host "host-of-set.b": it would not ("b" may have n = 2); ' +
        'reload-instance on host "host-of-set.a": not tried, because set.b was not done ("a" may have n = 2).',
    },
  })
})

test('a host that stays silent is given up after a while, and so is what needs it', async () => {
  const { outcome, started } = await run([task('set.b'), task('set.a', { needs: ['set.b'] })], {
    'set.b': 'silent',
  })
  expect(started).toEqual([])
  expect(outcome).toMatchObject({ fault: { detail: expect.stringContaining('no answer') } })
})

test('a host that was heard of lately is waited for, however long the step had taken before', async () => {
  const member = { hostId: 'h', hostState: 'online', ageMs: 2_000 }
  expect((await run([task('set.b')], { 'set.b': 'silent' }, [member])).outcome).toBeNull()
})

test('a primary is not left stopped while no host at all is heard: the console is cut off then', async () => {
  const restore = task('restore', { task: { kind: 'restore-primary', instanceId: 'i' as never } })
  const away = [
    { hostId: 'h', hostState: 'offline', ageMs: 60_000 },
    { hostId: 'h2', hostState: 'offline', ageMs: 60_000 },
  ]
  expect((await run([restore], { restore: 'silent' }, away)).outcome).toBeNull()
  const heard = away.map((m, i) => (i === 1 ? { ...m, hostState: 'online' } : m))
  expect((await run([restore], { restore: 'silent' }, heard)).outcome).toMatchObject({ word: 'fail' })
})

test('where all is taken back the outcome is as it was; a need for what was never begun holds nothing up', async () => {
  const { outcome, started } = await run(
    [task('set.b', { after: 'not-begun' }), task('set.a', { needs: ['set.b'] })],
    {},
  )
  expect(started).toEqual(['set.a'])
  expect(outcome).toMatchObject({ word: 'fail', fault: why, records: [] })
})
