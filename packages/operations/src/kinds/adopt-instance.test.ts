import { expect, test } from 'vitest'
import { adoptInstance } from './adopt-instance'

const id = (n: number) => `0000000${n}-0000-4000-8000-000000000000`
const member = (n: number, change: object = {}) => ({
  instanceId: id(n),
  name: `one-${n}`,
  hostId: `host-${n}`,
  hostName: `h${n}`,
  hostState: 'online',
  state: 'unknown',
  memberRole: n === 1 ? 'primary' : 'standby',
  systemIdentifier: '42',
  connection: { host: '127.0.0.1', port: 20_000 + n },
  logins: { replication: `floe_standby_one_${n}_0123456789abcdef`, repair: null },
  ...change,
})
const cluster = (members: object[], more: object = {}) => ({
  name: 'one',
  control: 'agent',
  members,
  primaryInstanceId: id(1),
  automatic: null,
  holdings: { timeline: { timeline: 3 }, promotions: [] },
  ...more,
})

/** The tasks that a step has asked for, and how its pass ended. */
async function run(step: 'adopt' | 'fence', n: number, of: object) {
  const asked: object[] = []
  const status = (state: string) => ({ state, log: [], message: null, progress: null })
  const agent = {
    checkTask: async () => status(asked.length > 0 ? 'running' : 'not-started'),
    startTask: async ({ task }: { task: object }) => {
      asked.push(task)
      return status('running')
    },
  }
  const outcome = await adoptInstance.steps[step].run({
    operationId: id(9),
    input: { instanceId: id(n) },
    step: { name: step, attempt: 1, startedAt: new Date(), taskLogSeq: 0 },
    results: {},
    now: new Date(),
    cancelAskedAt: null,
    readCluster: async () => of,
    agent,
  } as never)
  return { asked, word: outcome.word }
}

test('the agent is told what is recorded: name, port, system, place in the cluster, and who the primary is', async () => {
  const { asked } = await run('adopt', 2, cluster([member(1), member(2)]))
  expect(asked).toEqual([
    {
      kind: 'adopt-instance',
      instanceId: id(2),
      name: 'one-2',
      port: 20_002,
      systemIdentifier: '42',
      memberRole: 'standby',
      alone: false,
      logins: { replication: 'floe_standby_one_2_0123456789abcdef', repair: null },
      roles: ['floe_standby_one_1_0123456789abcdef', 'floe_standby_one_2_0123456789abcdef'],
      primary: { instanceId: id(1), timeline: 3, heldBack: null },
    },
  ])
})

test('one that has its cluster for itself lets no member in', async () => {
  const { asked } = await run('adopt', 1, cluster([member(1)]))
  expect(asked).toMatchObject([{ alone: true, roles: [] }])
})

test('a member of a cluster that fails over automatically is held back, and not adopted before that can be told', async () => {
  const automatic = {
    afterMs: 5_000,
    minIntervalMs: 0,
    isolatedAfterMs: 30_000,
    isolatedPrimary: 'read-only',
  }
  const members = [member(1), member(2)]
  const { asked } = await run('adopt', 1, cluster(members, { automatic }))
  expect(asked).toMatchObject([
    { primary: { heldBack: { isolatedAfterMs: 30_000, isolatedPrimary: 'read-only' } } },
  ])
  const unknown = cluster(members, { automatic, holdings: { timeline: null, promotions: [] } })
  await expect(run('adopt', 1, unknown)).rejects.toMatchObject({
    fault: { code: 'automatic.timeline_unknown' },
  })
})

test('what was never seen proves nothing; the system is that of any copy', async () => {
  const unseen = { systemIdentifier: null }
  await expect(run('adopt', 1, cluster([member(1, unseen)]))).rejects.toMatchObject({
    fault: { code: 'instance.never_seen' },
  })
  await expect(run('adopt', 1, cluster([member(1, { connection: null })]))).rejects.toMatchObject({
    fault: { code: 'instance.never_seen' },
  })
  const { asked } = await run('adopt', 1, cluster([member(1, unseen), member(2)]))
  expect(asked).toMatchObject([{ systemIdentifier: '42' }])
})

test('one that is recorded as fenced is fenced again, up to the timeline that is recorded; another one is left alone', async () => {
  const fenced = cluster([member(1), member(2, { memberRole: 'fenced' })])
  expect(await run('fence', 2, fenced)).toMatchObject({
    word: 'wait',
    asked: [{ kind: 'fence-instance', instanceId: id(2), timeline: 3 }],
  })
  expect(await run('fence', 1, fenced)).toEqual({ word: 'next', asked: [] })
})
