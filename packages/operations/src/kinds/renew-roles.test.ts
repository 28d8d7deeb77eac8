import type { TaskInput, TaskKey } from '@floe/agent-contract'
import { type Fault, FaultError, foreseeableLogin } from '@floe/domain'
import { describe, expect, test } from 'vitest'
import { PATIENCE } from '../patience'
import type { StepOutcome } from '../step'
import { renewRoles } from './renew-roles'

const VERIFIER = `SCRAM-SHA-256$4096:${'A'.repeat(22)}==$${'B'.repeat(43)}=:${'C'.repeat(43)}=`
const id = (n: number) => `0000000${n}-0000-4000-8000-000000000000`
const nameOf = (n: number) => (n === 1 ? 'one' : `one-${n}`)
const former = (n: number) => foreseeableLogin('standby', nameOf(n))
const roleOf = (n: number) => `${former(n)}_${'0'.repeat(15)}${n}`
const cluster = {
  clusterId: id(9),
  name: 'one',
  control: 'agent',
  primaryInstanceId: id(1),
  synchronous: null,
  pageRepair: { enabled: false, excluded: [] },
  members: [1, 2, 3].map((n) => ({
    instanceId: id(n),
    name: nameOf(n),
    hostId: `host-${n}`,
    hostName: `h${n}`,
    hostState: 'online',
    state: 'running',
    memberRole: n === 1 ? 'primary' : 'standby',
    connection: { host: '10.0.0.1', port: 5432, user: 'postgres', database: 'postgres' },
    systemIdentifier: '1',
    engineVersion: '18.6',
    logins: { replication: n === 1 ? null : former(n), repair: null },
  })),
}

type Task = TaskInput & { n: number }
type Answer = (task: Task) => Record<string, unknown> | Fault
const isFault = (answer: object): answer is Fault => 'code' in answer

const well: Answer = (task) => {
  switch (task.kind) {
    case 'prepare-role':
      return task.n === 1
        ? { role: null, former: null, verifier: null }
        : { role: roleOf(task.n), former: former(task.n), verifier: VERIFIER }
    case 'replicate-as':
      return { streaming: true }
    case 'retire-roles':
      return { retired: task.retired.map(({ role }) => role), kept: [] }
    default:
      return {}
  }
}

/** Runs the whole operation over hosts that answer so; what was asked of them, and how it ended. */
async function run(answer: Answer, options: { secondsGoneBy?: number; asksAs?: string } = {}) {
  const { asksAs = null } = options
  const asking = {
    ...cluster,
    pageRepair: { enabled: asksAs !== null, excluded: [] },
    members: cluster.members.map((m) =>
      m.name === 'one-3' ? { ...m, logins: { ...m.logins, repair: asksAs } } : m,
    ),
  }
  const asked: Task[] = []
  const ended = new Map<string, Record<string, unknown>>()
  const results: Record<string, Record<string, unknown>> = {}
  const status = { log: [], message: null, progress: null }
  const agentOf = (hostId: string) => ({
    checkTask: async ({ key }: { key: TaskKey }) => {
      const result = ended.get(`${hostId}/${key.step}`)
      if (!result) return { ...status, state: 'not-started' }
      return isFault(result)
        ? { ...status, state: 'failed', fault: result }
        : { ...status, state: 'succeeded', result }
    },
    startTask: async ({ key, task: started }: { key: TaskKey; task: TaskInput }) => {
      const task = { ...started, n: Number(hostId.at(-1)) } as Task
      const result = answer(task)
      // an agent answers neither to what it does not know, nor where it is not reached
      if (isFault(result) && result.code.startsWith('agent.')) throw new FaultError(result)
      asked.push(task)
      ended.set(`${hostId}/${key.step}`, result as Record<string, unknown>)
      return { ...status, state: 'running' }
    },
  })
  let outcome: StepOutcome | undefined
  for (const { name } of renewRoles.plan({} as never, { state: null })) {
    for (let pass = 0; pass === 0 || outcome?.word === 'wait'; pass++) {
      if (pass > 20) throw new Error(`step ${name} does not end`)
      outcome = await renewRoles.steps[name]?.run({
        operationId: id(8),
        input: { clusterId: cluster.clusterId, instanceId: id(1) },
        step: { name, attempt: 1, startedAt: new Date(0), taskLogSeq: 0 },
        results,
        // long past every patience, where nothing is reported
        now: new Date((options.secondsGoneBy ?? 0) * 1_000),
        atWorkSince: new Date(0),
        patience: PATIENCE,
        controllerSince: new Date(-60_000),
        cancelAskedAt: null,
        readCluster: async () => asking,
        agentOf,
      } as never)
    }
    if (outcome?.word !== 'next') break
    results[name] = outcome.result
  }
  const of = <K extends TaskInput['kind']>(kind: K) =>
    asked.filter((task) => task.kind === kind) as unknown as Extract<TaskInput, { kind: K }>[]
  return { outcome, of, asked }
}

test('roles are created beside those of before, taken on one by one, and only then those of before go', async () => {
  const { outcome, of, asked } = await run(well, { secondsGoneBy: 30 })
  expect(of('admit-roles')).toMatchObject([
    {
      instanceId: id(1),
      logins: [{ role: roleOf(2) }, { role: roleOf(3) }],
      roles: [former(2), former(3), roleOf(2), roleOf(3)],
    },
  ])
  expect(of('replicate-as')).toMatchObject([
    { instanceId: id(2), upstream: { role: roleOf(2), slot: 'floe_one_2' }, former: former(2) },
    { instanceId: id(3), upstream: { role: roleOf(3), slot: 'floe_one_3' }, former: former(3) },
  ])
  expect(of('retire-roles')).toMatchObject([
    {
      instanceId: id(1),
      retired: [
        { role: former(2), successor: { name: 'one-2', role: roleOf(2) } },
        { role: former(3), successor: { name: 'one-3', role: roleOf(3) } },
      ],
      roles: [roleOf(2), roleOf(3)],
    },
  ])
  // what commits wait for is nobody's business here
  expect(asked.map(({ kind }) => kind)).not.toContain('set-synchronous')
  // every member lets in the new ones before a report could tell of them
  for (const { roles } of of('set-page-repair-sources')) expect(roles).toEqual([roleOf(2), roleOf(3)])
  expect(outcome).toMatchObject({ word: 'next', result: { renewed: ['one-2', 'one-3'], left: [] } })
})

test('a member whose host is of an earlier version is left as it is, and named', async () => {
  const older: Answer = (task) =>
    task.n === 3 && task.kind === 'prepare-role' ? { code: 'agent.bad_request', message: '[…]' } : well(task)
  const { outcome, of } = await run(older, { secondsGoneBy: 30 })
  expect(of('replicate-as').map(({ instanceId }) => instanceId)).toEqual([id(2)])
  expect(of('retire-roles')).toMatchObject([
    { retired: [{ role: former(2) }], roles: [roleOf(2), former(3)] },
  ])
  expect(outcome).toMatchObject({
    word: 'next',
    result: {
      renewed: ['one-2'],
      left: [
        '"one-3": the agent of host "h3" is of an earlier version. It does not know task "prepare-role".',
      ],
    },
  })
})

test('where that is the primary, nothing is begun', async () => {
  const older: Answer = (task) => (task.n === 1 ? { code: 'agent.bad_request', message: '[…]' } : well(task))
  const { outcome, of } = await run(older)
  expect(outcome).toMatchObject({ word: 'fail', fault: { code: 'agent.older' } })
  expect(of('replicate-as')).toEqual([])
})

describe('a standby that does not come as its new role', () => {
  test('and went back keeps the one of before; the new one goes, and the operation says so', async () => {
    const refused: Answer = (task) =>
      task.n === 2 && task.kind === 'replicate-as'
        ? { code: 'standby.role_refused', message: 'instance "one-2" does not stream as its new role' }
        : well(task)
    const { outcome, of } = await run(refused, { secondsGoneBy: 30 })
    expect(of('retire-roles')).toMatchObject([
      {
        retired: [
          { role: roleOf(2), successor: null },
          { role: former(3), successor: { name: 'one-3' } },
        ],
        roles: [former(2), roleOf(3)],
      },
    ])
    expect(outcome).toMatchObject({
      word: 'fail',
      fault: {
        code: 'role.not_renewed',
        detail: '"one-2": instance "one-2" does not stream as its new role.',
        hint: expect.stringContaining('./floe cluster renew-roles one'),
      },
    })
  })

  test('and of which it is not known how it comes keeps both', async () => {
    const silent: Answer = (task) =>
      task.n === 2 && task.kind === 'replicate-as'
        ? { code: 'agent.unreachable', message: 'could not reach the agent' }
        : well(task)
    const { outcome, of } = await run(silent, { secondsGoneBy: 61 })
    expect(of('retire-roles')).toEqual([])
    expect(outcome).toMatchObject({
      word: 'fail',
      fault: { code: 'role.not_renewed', detail: '"one-2": host "h2" does not answer.' },
    })
  })
})

test('what an earlier run left behind goes: the role of before, where the member comes as its new one already', async () => {
  const done: Answer = (task) =>
    task.kind === 'prepare-role' && task.n > 1
      ? { role: roleOf(task.n), former: null, verifier: null }
      : well(task)
  const { of } = await run(done, { secondsGoneBy: 30 })
  expect(of('admit-roles')).toEqual([])
  expect(of('replicate-as')).toEqual([])
  expect(of('retire-roles')[0]?.retired).toEqual([
    { role: former(2), successor: { name: 'one-2', role: roleOf(2) } },
    { role: former(3), successor: { name: 'one-3', role: roleOf(3) } },
  ])
})

test('it has not ended before the new roles are reported', async () => {
  await expect(run(well)).rejects.toThrow('step observe does not end')
})

test('a member that still asks for pages as a role of before is named', async () => {
  const { outcome } = await run(well, { secondsGoneBy: 30, asksAs: foreseeableLogin('repair', 'one-3') })
  expect(outcome).toMatchObject({
    word: 'next',
    result: {
      renewed: ['one-2', 'one-3'],
      left: [expect.stringContaining('"one-3": it still fetches pages')],
    },
  })
})
