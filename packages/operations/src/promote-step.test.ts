import type { TaskKey } from '@floe/agent-contract'
import type { ClusterMember, ClusterObserved } from '@floe/domain'
import { fault } from '@floe/domain'
import { expect, test } from 'vitest'
import { PATIENCE } from './patience'
import { PROMOTE_SILENCE_MS, promoteStep } from './promote-step'
import { promotionBegun } from './promotion-record'
import type { StepContext, StepOutcome, StepRecord } from './step'

const instanceId = '00000000-0000-4000-8000-000000000002' as never
const step = promoteStep<'failover-cluster'>({
  on: (_context, cluster) => cluster.members[0] as ClusterMember,
  task: () => ({ kind: 'promote-instance', instanceId, beyondLsn: null, atLeastLsn: null, standbyNames: '' }),
  begins: (_task, context, cluster) => [promotionBegun(context, cluster, instanceId, null)],
  records: () => [],
})

/**
 * Passes over the step, as the loop makes them, until it ends. `ends`: what the agent answers of each attempt once it was
 * started, `done`, `running` or the code of its fault; `silent`: in which passes it answers nothing.
 */
async function run(
  ends: readonly string[],
  { silent }: { silent(pass: number): boolean } = { silent: () => false },
) {
  const started: number[] = []
  const recorded: StepRecord[] = []
  const at = { attempt: 1, pass: 0, ms: 0 }
  const ask = async ({ attempt }: TaskKey) => {
    if (silent(at.pass)) throw fault('agent.unreachable', 'no answer')
    const end = ends[attempt - 1]
    const begun = end === 'running' ? 'running' : end === 'done' ? 'succeeded' : 'failed'
    const state = started.includes(attempt) ? begun : 'not-started'
    return {
      state,
      log: [],
      result: { timeline: 2, promoteMs: 1, endLsn: null },
      fault: state === 'failed' ? { code: end, message: `${end} ${attempt}` } : null,
    }
  }
  const agent = {
    checkTask: ({ key }: { key: TaskKey }) => ask(key),
    startTask: async ({ key }: { key: TaskKey }) => {
      started.push(key.attempt)
      return ask(key)
    },
  }
  const outcomes: StepOutcome[] = []
  const pass = async () => {
    const promotions = recorded.flatMap((r) => (r.kind === 'promotion-begun' ? [r.promotion] : []))
    const cluster = {
      clusterId: 'c',
      name: 'c',
      holdings: { promotions },
      members: [{ name: 'c2', hostName: 'h2', hostId: 'h', ageMs: silent(at.pass) ? at.ms : 0 }],
    } as unknown as ClusterObserved
    const outcome = await step.run({
      operationId: 'o',
      step: { name: 'promote', attempt: at.attempt, startedAt: new Date(0), taskLogSeq: 0 },
      now: new Date(at.ms),
      atWorkSince: new Date(0),
      patience: PATIENCE,
      cancelAskedAt: null,
      results: { verify: { leftOut: [] } },
      agentOf: () => agent,
      readCluster: async () => cluster,
      record: async (records: readonly StepRecord[]) => void recorded.push(...records),
    } as unknown as StepContext<'failover-cluster'>)
    outcomes.push(outcome)
    at.pass++
    at.ms += 1_000
    if (outcome.word === 'wait') at.attempt = outcome.attempt ?? at.attempt
    return outcome
  }
  let last = await pass()
  while (last.word === 'wait' && at.pass < 40) last = await pass()
  const { fault: why = null, records = [] } = last as { fault?: { code: string }; records?: StepRecord[] }
  return {
    word: last.word,
    code: why?.code ?? null,
    settles: records.length > 0,
    started,
    ms: at.ms,
    pass,
    at,
  }
}

test('a promotion that failed is asked for again, and goes on where it now takes place', async () => {
  expect(await run(['promote.not_begun', 'done'])).toMatchObject({ word: 'next', started: [1, 2] })
  // one whose connection was lost may have taken place: the same task then says so
  expect(await run(['instance.no_connection', 'done'])).toMatchObject({ word: 'next', started: [1, 2] })
})

test('one that was begun by no attempt is settled, and may be taken back', async () => {
  const ended = await run(['promote.not_begun', 'promote.not_begun', 'promote.not_begun'])
  expect(ended).toMatchObject({ word: 'fail', code: 'promote.not_begun', settles: true, started: [1, 2, 3] })
})

test('one that any attempt may have begun is not, whatever the last one says', async () => {
  for (const ends of [
    ['instance.no_connection', 'promote.not_begun', 'promote.not_begun'],
    ['promote.not_begun', 'instance.no_connection', 'promote.behind'],
  ])
    expect(await run(ends)).toMatchObject({ word: 'fail', code: 'promote.unsettled', settles: false })
})

test('a standby that lacks WAL is asked once: it would only lack it again', async () => {
  expect(await run(['promote.behind'])).toMatchObject({ code: 'promote.behind', settles: true, started: [1] })
})

test('a host that falls silent at it is given up within 15 s, and what became of it stays open', async () => {
  // it answers in the first pass, where the task is started
  const lost = await run(['running'], { silent: (pass) => pass > 0 })
  expect(lost).toMatchObject({ word: 'fail', code: 'promote.silent', settles: false, started: [1] })
  expect(lost.ms).toBeLessThanOrEqual(15_000)
})

test('one that was silent before it was told anything was not promoted, and stays given up when it answers again', async () => {
  const lost = await run(['done'], { silent: (pass) => pass * 1_000 <= PROMOTE_SILENCE_MS + 1_000 })
  expect(lost).toMatchObject({ word: 'fail', code: 'promote.not_told', started: [] })
  expect(lost.ms).toBeLessThanOrEqual(15_000)
  // while that is being taken back, the host is there again
  expect(await lost.pass()).toMatchObject({ word: 'fail', fault: { code: 'promote.not_told' } })
  expect(lost.started).toEqual([])
})
