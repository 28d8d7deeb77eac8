import {
  type ClusterHoldings,
  type ClusterMember,
  type ClusterObserved,
  holdingsRecordOf,
  type InstanceId,
  judgeHoldings,
  type Lsn,
} from '@floe/domain'
import { expect, test } from 'vitest'
import {
  answersOf,
  chooseCandidate,
  failoverCluster,
  fenceOrders,
  judgeAcceptance,
  possibleBeside,
  whyNotAfter,
} from './failover-cluster'

const member = (instanceId: string): ClusterMember =>
  ({ instanceId, name: instanceId, hostName: `h-${instanceId}`, memberRole: 'standby' }) as ClusterMember
const holdings: ClusterHoldings = {
  timeline: { timeline: 1, ancestors: [] },
  begun: [{ timeline: 1, begin: '0/0' as Lsn }],
  explained: 0,
  promotions: [],
  rules: [{ count: 1, instanceIds: ['a', 'b'] as InstanceId[] }],
  weaker: [],
  floor: false,
}
const observed = {
  clusterId: 'c',
  primaryInstanceId: 'p',
  commitMode: 'on',
  holdings,
  members: [member('p'), member('a'), member('b')],
} as unknown as ClusterObserved
const silent = { fault: { code: 'agent.unreachable', message: '' } }
const at = (endLsn: string | null, more = {}) => (endLsn ? { endLsn, timeline: 1, ...more } : silent)

function judge(
  ends: { p?: string | null; a: string | null; b: string | null },
  candidate: string,
  accept: number | 'unknown' | null,
  cluster = observed,
) {
  const results = { fence: { p: at(ends.p ?? null) }, isolate: { a: at(ends.a), b: at(ends.b) } }
  const verdict = judgeHoldings(holdingsRecordOf(cluster), answersOf(cluster, results), candidate)
  const { lossBytes, fault } = judgeAcceptance(verdict, accept)
  return [lossBytes, fault?.code ?? null]
}

test('of isolated standbys the furthest is proven, and another one is refused with who is ahead', () => {
  const ends = { p: '0/3000020', a: '0/3000010', b: '0/3000000' }
  expect(judge(ends, 'a', null)).toEqual([0, null])
  expect(judge(ends, 'b', null)).toEqual([32, 'candidate.behind'])
  expect(judge(ends, 'b', 31)).toEqual([32, 'failover.loss_not_accepted'])
  expect(judge(ends, 'b', 32)).toEqual([32, null])
})

test('one that does not answer counts as unseen: who is left may lack what it acknowledged', () => {
  const ends = { a: '0/3000010', b: null }
  expect(judge(ends, 'a', null)).toEqual([null, 'candidate.quorum_unseen'])
  expect(judge(ends, 'a', 1_000_000)).toEqual([null, 'failover.loss_not_accepted'])
  expect(judge(ends, 'a', 'unknown')).toEqual([null, null])
})

test('a candidate that reaches the end of the former primary’s WAL loses nothing, whatever the mode', () => {
  const c = { ...observed, holdings: { ...holdings, rules: [null] } }
  const ends = { a: '0/3000010', b: '0/3000000' }
  expect(judge({ ...ends, p: '0/3000010' }, 'a', null, c)).toEqual([0, null])
  expect(judge({ ...ends, p: '0/3000011' }, 'a', null, c)).toEqual([1, 'failover.loss_not_accepted'])
})

test('one that may have been promoted and was not asked makes the loss unknown', () => {
  const promotions = [
    { instanceId: 'b' as InstanceId, operationId: 'o', step: 'promote', attempt: 1, from: null },
  ]
  const c = { ...observed, holdings: { ...holdings, promotions, rules: [null] } }
  expect(judge({ p: '0/3000000', a: '0/3000000', b: null }, 'a', null, c)).toEqual([
    null,
    'promotion.unsettled',
  ])
  expect(judge({ p: '0/3000000', a: '0/3000000', b: null }, 'a', 0, c)).toEqual([
    null,
    'failover.loss_not_accepted',
  ])
})

test('an agent of before contract 1.10 leaves the history of later timelines unknown', () => {
  const results = {
    fence: { p: silent },
    isolate: { a: at('0/3000010', { timeline: 2 }), b: at('0/3000010', { timeline: 2 }) },
  }
  const verdict = judgeHoldings(holdingsRecordOf(observed), answersOf(observed, results), 'a')
  expect(verdict).toMatchObject({ kind: 'unknown', doubts: [{ code: 'history.unknown' }] })
})

test('orders to fence reach a primary whose timeline the candidate had not come to', () => {
  const on = (timeline: number) => ({ holdings: { ...holdings, timeline: { timeline, ancestors: null } } })
  expect(fenceOrders(on(1), 2)).toEqual({ former: { timeline: 1 }, possible: { timeline: 2 } })
  // the primary began 3; a standby that was left on 2 begins another 3
  expect(fenceOrders(on(3), 3)).toEqual({ former: { timeline: 3 }, possible: { timeline: 4 } })
})

function choose(
  ends: { p?: string | null; a: string | null; b: string | null },
  accept: number | 'unknown' | null,
) {
  const results = { fence: { p: at(ends.p ?? null) }, isolate: { a: at(ends.a), b: at(ends.b) } }
  const choice = chooseCandidate(observed, answersOf(observed, results), {
    instanceIds: ['a', 'b'] as InstanceId[],
    acceptLoss: accept,
  })
  return choice && [choice.instanceId, choice.fault?.code ?? null]
}

test('where nobody is named whoever holds the most takes over, by positions that are final (F16)', () => {
  expect(choose({ p: null, a: '0/3000000', b: '0/3000300' }, null)).toEqual(['b', null])
  expect(choose({ p: '0/3000000', a: '0/3000000', b: '0/3000000' }, null)).toEqual(['a', null])
  // who was expected to has fallen silent
  expect(choose({ p: '0/3000010', a: null, b: '0/3000010' }, null)).toEqual(['b', null])
  expect(choose({ p: null, a: null, b: '0/3000010' }, 'unknown')).toEqual(['b', null])
  expect(choose({ p: null, a: null, b: '0/3000010' }, null)).toEqual(['b', 'candidate.quorum_unseen'])
  expect(choose({ p: null, a: null, b: null }, 'unknown')).toBeUndefined()
})

test('of several losses that are accepted the least is taken', () => {
  const asynchronous = { ...observed, holdings: { ...holdings, rules: [null] } }
  const results = { fence: { p: at('0/3000100') }, isolate: { a: at('0/3000000'), b: at('0/30000F0') } }
  const instanceIds = ['a', 'b'] as InstanceId[]
  const answers = answersOf(asynchronous, results)
  const choice = (acceptLoss: number | 'unknown') =>
    chooseCandidate(asynchronous, answers, { instanceIds, acceptLoss })
  expect(choice(1_000)).toMatchObject({ instanceId: 'b', lossBytes: 16, fault: null })
  expect(choice('unknown')).toMatchObject({ instanceId: 'b', lossBytes: 16 })
})

test('no commit is made to wait for a member that has parted from the new primary, is silent or is fenced', () => {
  const results = {
    fence: { p: at('0/3000400') },
    isolate: { a: at('0/3000000'), b: at('0/3000180'), c: silent },
  }
  const end = { timeline: 1, lsn: '0/3000000' as Lsn, ancestors: [] }
  const why = (name: string) => whyNotAfter(results, end)({ name })
  expect(why('a')).toBeNull()
  expect(why('b')).toBe('it has WAL that the new primary lacks')
  expect(why('c')).toBe('it did not answer')
  expect(why('d')).toBe('it did not answer')
  expect(why('p')).toBe('it has to be rejoined first')
})

test('a promotion is taken back where it did not take place for certain, and by no other fault', () => {
  const id = (n: number) => `00000000-0000-4000-8000-00000000000${n}`
  const members = ['p', 'a', 'b'].map((name, n) => ({
    ...member(name),
    instanceId: id(n),
    connection: { host: 'h', port: 1 },
  }))
  const context = {
    input: { instanceId: id(1) },
    step: { name: 'promote' },
    results: {
      check: { formerInstanceId: id(0), otherInstanceIds: [id(2)] },
      fence: { p: { ...at('0/3000000'), wasRunning: true } },
    },
  }
  const undone = (code: string) =>
    failoverCluster.undo?.(context as never, { ...observed, control: 'agent', members } as never, {
      code,
      message: '',
    })
  for (const code of ['promote.not_begun', 'promote.not_told', 'promote.behind'])
    expect(undone(code)?.map((t) => t.id)).toEqual(['restore', 'repoint.a', 'repoint.b'])
  for (const code of [
    'promote.silent',
    'promote.unsettled',
    'promote.not_promoted',
    'instance.no_connection',
  ])
    expect(undone(code)).toEqual([])
})

const uuid = (n: number) => `00000000-0000-4000-8000-00000000000${n}`

test('whose promotion may still take place is fenced also where it was passed by for another one', () => {
  const context = {
    input: { instanceId: uuid(1) } as never,
    results: { check: { possibleInstanceIds: [uuid(4)] }, verify: { instanceId: uuid(2) } },
  }
  const begun = [uuid(1), uuid(2), uuid(4)].map((instanceId) => ({ instanceId }) as never)
  expect(possibleBeside(context, { holdings: { ...holdings, promotions: begun } })).toEqual([
    uuid(4),
    uuid(1),
  ])
  const over = { ...context, results: { ...context.results, check: { promotionsOver: [uuid(1)] } } }
  expect(possibleBeside(over, { holdings: { ...holdings, promotions: begun } })).toEqual([uuid(4)])
})

/** The step that decides whether anybody is promoted, after these answers; `typed` are hosts that a person named as unreachable. */
async function verified(
  fence: object,
  isolate: object,
  { typed = [] as string[], possible = [] as string[] } = {},
) {
  const ids = { p: uuid(1), a: uuid(2), b: uuid(3) }
  const members = Object.entries(ids).map(([name, instanceId]) => ({ ...member(name), instanceId }))
  const outcome = await failoverCluster.steps.verify.run({
    input: {
      instanceId: ids.a,
      choose: false,
      acceptLoss: 'unknown',
      unreachableHost: typed[0] ?? null,
      alsoUnreachable: typed.slice(1),
    },
    step: { startedAt: new Date() },
    now: new Date(),
    cancelAskedAt: null,
    results: {
      check: {
        formerInstanceId: ids.p,
        instanceId: ids.a,
        otherInstanceIds: [ids.b],
        possibleInstanceIds: possible.map((name) => ids[name as 'b']),
      },
      fence,
      isolate,
    },
    readCluster: async () => ({
      ...observed,
      primaryInstanceId: ids.p,
      synchronous: null,
      holdings: { ...holdings, rules: [null] },
      members,
    }),
  } as never)
  return outcome.word === 'fail' ? outcome.fault : outcome
}
const fenced = at('0/3000100')
const follows = at('0/3000000', { inRecovery: true })

test('nobody is promoted beside a primary that could not be fenced, unless its host was named as unreachable', async () => {
  const isolated = { a: follows, b: follows }
  expect(await verified({ p: fenced }, isolated)).toMatchObject({ word: 'next', result: { fenced: true } })
  const refused = { code: 'failover.not_fenced', hint: expect.stringContaining('"h-p"') }
  expect(await verified({ p: silent }, isolated)).toMatchObject(refused)
  // the name of another host is none of its
  expect(await verified({ p: silent }, isolated, { typed: ['h-b'] })).toMatchObject(refused)
  expect(await verified({ p: silent }, isolated, { typed: ['h-b', 'h-p'] })).toMatchObject({
    word: 'next',
    result: { fenced: false },
    log: expect.arrayContaining([{ text: '"p" is not fenced: host "h-p" is unreachable' }]),
  })
  // whoever may have been promoted unseen counts as a primary here
  expect(await verified({ p: fenced, b: silent }, isolated, { possible: ['b'] })).toMatchObject({
    code: 'failover.not_fenced',
    message: '"b" could not be fenced',
  })
})

test('a primary that answers, and is newer than what is known, is not passed by though its host was named', async () => {
  const newer = { fault: { code: 'fence.newer_timeline', message: 'it is on timeline 7' } }
  expect(await verified({ p: newer }, { a: follows, b: follows }, { typed: ['h-p'] })).toMatchObject({
    code: 'fence.newer_timeline',
  })
})

test('nobody is promoted beside a member that accepts writes, or in the place of a candidate that is silent', async () => {
  const writes = at('0/3000200', { inRecovery: false })
  expect(await verified({ p: fenced }, { a: follows, b: writes })).toMatchObject({
    code: 'failover.second_primary',
    message: 'instance "b" accepts writes',
  })
  expect(await verified({ p: fenced }, { a: silent, b: follows })).toMatchObject({
    code: 'agent.unreachable',
  })
  expect(await verified({ p: fenced }, { b: follows })).toMatchObject({ code: 'candidate.silent' })
})
