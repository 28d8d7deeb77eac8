import { fault, type PromotionBegun } from '@floe/domain'
import { expect, test } from 'vitest'
import { PATIENCE } from '../patience'
import { promotionsEnded, rejoinStandby } from './rejoin-standby'

test('a member that was fenced and follows again leaves no promotion unsettled, and that of another stays', () => {
  const begun = (instanceId: string, operationId: string) => ({ instanceId, operationId }) as PromotionBegun
  const holdings = { promotions: [begun('a', '1'), begun('b', '2'), begun('a', '3')] } as never
  expect(promotionsEnded({ clusterId: 'c' as never, holdings }, 'a')).toEqual([
    { kind: 'promotion-passed', clusterId: 'c', operationId: '1' },
    { kind: 'promotion-passed', clusterId: 'c', operationId: '3' },
  ])
})

const id = (n: number) => `0000000${n}-0000-4000-8000-000000000000`
const cluster = {
  clusterId: id(5),
  primaryInstanceId: id(1),
  control: 'agent',
  members: [
    { instanceId: id(1), name: 'one', hostId: 'h1', hostName: 'h1', memberRole: 'primary' },
    { instanceId: id(2), name: 'two', hostId: 'h2', hostName: 'h2', memberRole: 'fenced' },
  ],
}
const kept = { name: 'kept-aside-20260101T000000000Z-1' }

/** What a step asks the agent, and how it goes on. */
async function step(
  name: 'keep' | 'rewind' | 'clone',
  given: { input?: object; results?: object; start?: () => never },
) {
  const asked: Record<string, unknown>[] = []
  const running = { state: 'running', log: [], message: null, progress: null }
  const agent = {
    checkTask: async () => (asked.length === 0 ? { ...running, state: 'not-started' } : running),
    startTask: async ({ task }: { task: Record<string, unknown> }) => {
      given.start?.()
      asked.push(task)
      return running
    },
  }
  const outcome = await rejoinStandby.steps[name].run({
    operationId: id(9),
    input: { instanceId: id(2), method: 'rewind', ...given.input },
    step: { name, attempt: 1, startedAt: new Date(), taskLogSeq: 0 },
    results: { admit: { upstream: { slot: 's' } }, ...given.results },
    now: new Date(),
    atWorkSince: new Date(0),
    patience: PATIENCE,
    cancelAskedAt: null,
    readCluster: async () => cluster,
    agent,
    agentOf: () => agent,
  } as never)
  return { asked, outcome }
}

test('what only it had is kept before anything is taken back, by a rewind or by a copy', () => {
  for (const method of ['rewind', 'clone'] as const) {
    const steps = rejoinStandby.plan({ method } as never, { state: 'stopped' }).map((s) => s.name)
    const at = (name: string) => steps.indexOf(name as never)
    expect(at('keep')).toBeGreaterThan(at('admit'))
    expect(at('clone')).toBeGreaterThan(at('keep'))
    if (method === 'rewind') expect(at('rewind')).toBeGreaterThan(at('keep'))
  }
})

test('the agent is told whom it is to follow, and only a person’s word has it keep nothing', async () => {
  expect((await step('keep', {})).asked).toMatchObject([
    { kind: 'keep-aside', primary: 'one', discard: false },
  ])
  expect((await step('keep', { input: { discardOwn: true } })).asked).toMatchObject([{ discard: true }])
})

test('a rewind knows what was kept, for a rejoin that finds it cut short', async () => {
  const { asked } = await step('rewind', { results: { keep: { keptAside: kept } } })
  expect(asked).toMatchObject([{ kind: 'rewind-instance', keptAside: kept.name }])
  expect((await step('rewind', { results: { keep: { keptAside: null } } })).asked).toMatchObject([
    { keptAside: null },
  ])
})

test('an agent of an earlier version still rejoins, and it is said that nothing was kept', async () => {
  const start = () => {
    throw fault('agent.bad_request', 'No matching discriminator')
  }
  const { outcome } = await step('keep', { start })
  expect(outcome).toMatchObject({
    word: 'next',
    result: { ownBytes: null, ownCommits: null, keptAside: null },
    log: [{ text: expect.stringMatching(/^nothing was kept aside: its host’s agent is of an earlier/) }],
  })
})

test('a refusal to keep ends the rejoin before anything is taken back', async () => {
  const start = () => {
    throw fault('keep_aside.disk_full', 'the disk has no room')
  }
  expect((await step('keep', { start })).outcome).toMatchObject({
    word: 'fail',
    fault: { code: 'keep_aside.disk_full' },
  })
})
