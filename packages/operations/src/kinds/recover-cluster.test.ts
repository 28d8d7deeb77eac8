import { operationRecord, relationsOf, type TornList } from '@floe/domain'
import { expect, test } from 'vitest'
import { PATIENCE } from '../patience'
import { recoverCluster } from './recover-cluster'

const id = (n: number) => `0000000${n}-0000-4000-8000-000000000000`
const member = (n: number, name: string, more: object = {}) => ({
  instanceId: id(n),
  name,
  hostId: `h${n}`,
  hostName: `host-${n}`,
  hostState: 'online',
  memberRole: n === 1 ? 'primary' : 'standby',
  state: 'crashed',
  ...more,
})
const clusterOf = (...members: object[]) => ({
  clusterId: id(5),
  name: 'one',
  primaryInstanceId: id(1),
  control: 'agent',
  members,
})
const both = clusterOf(member(1, 'one'), member(2, 'two'))

const guard = (cluster: object, input: object = {}) =>
  recoverCluster.guard?.({
    input,
    instance: { name: 'one', cluster: { memberRole: 'primary' } },
    readCluster: async () => cluster,
  } as never)

test('it is ordered by an admin, of a primary with a standby, and while no member runs', async () => {
  expect(operationRecord('recover-cluster')).toMatchObject({ role: 'admin', action: 'cluster.recover' })
  await guard(both)
  await guard(both, { backupDirectory: '/srv/base', walDirectory: '/srv/wal' })
  await expect(guard(both, { walDirectory: '/srv/wal' })).rejects.toMatchObject({
    fault: { code: 'recover.no_backup' },
  })
  // one that waits for pages is starting; one that was stopped, or is fenced, gives nothing
  await guard(clusterOf(member(1, 'one', { state: 'starting' }), member(2, 'two', { state: 'stopped' })))
  await guard(
    clusterOf(
      member(1, 'one'),
      member(2, 'two'),
      member(3, 'old', { memberRole: 'fenced', state: 'running' }),
    ),
  )
  const code = (cluster: object) =>
    Promise.resolve(guard(cluster)).then(
      () => null,
      (error) => [error.fault.code, error.fault.hint],
    )
  expect(await code(clusterOf(member(1, 'one')))).toEqual(['recover.no_standby', expect.anything()])
  expect(await code(clusterOf(member(1, 'one', { hostState: 'offline' }), member(2, 'two')))).toEqual([
    'recover.host_silent',
    expect.anything(),
  ])
  expect(await code(clusterOf(member(1, 'one', { state: 'running' }), member(2, 'two')))).toEqual([
    'recover.member_runs',
    expect.stringContaining('rejoined'),
  ])
  expect(await code(clusterOf(member(1, 'one'), member(2, 'two', { state: 'running' })))).toEqual([
    'recover.member_runs',
    expect.stringContaining('instance stop two --mode immediate'),
  ])
})

const list = (role: 'primary' | 'standby', blocks: number[] = []): TornList =>
  ({
    systemIdentifier: '7',
    role,
    timeline: 1,
    redo: '0/1000000',
    end: role === 'primary' ? '0/3000000' : '0/2000000',
    consistent: '0/2000000',
    segmentBytes: 16_777_216,
    blocks: blocks.length,
    relations: relationsOf(
      blocks.map((block) => ({ tablespace: 1663, database: 5, relation: 16_384, fork: 0, block })),
    ),
    header: `header of the ${role}`,
    control: '0'.repeat(64),
  }) as TornList

const told = (role: 'primary' | 'standby', blocks?: number[]) => ({ list: list(role, blocks), why: null })

/** A step's tasks by host, and how it goes on; every task ends at once with `answer`. */
async function step(
  name: keyof typeof recoverCluster.steps,
  results: object,
  cluster: object = both,
  answer: (task: { kind: string }) => object = () => ({}),
  input: object = {},
) {
  const asked: Record<string, unknown>[] = []
  const agentOf = (hostId: string) => {
    const started = new Map<string, object>()
    return {
      checkTask: async ({ key }: { key: { step: string } }) =>
        started.has(key.step)
          ? { state: 'succeeded', log: [], result: started.get(key.step) }
          : { state: 'not-started', log: [] },
      startTask: async ({ key, task }: { key: { step: string }; task: { kind: string } }) => {
        asked.push({ hostId, ...task })
        started.set(key.step, answer(task))
        return { state: 'succeeded', log: [], result: answer(task) }
      },
    }
  }
  const outcome = await recoverCluster.steps[name].run({
    operationId: id(9),
    input: { clusterId: id(5), instanceId: id(1), confirmName: 'one', ...input },
    step: { name, attempt: 1, startedAt: new Date(), taskLogSeq: 0, doneBytes: null },
    results,
    now: new Date(),
    atWorkSince: new Date(0),
    patience: PATIENCE,
    cancelAskedAt: null,
    readCluster: async () => cluster,
    agentOf,
  } as never)
  return { asked, outcome }
}

test('every member is stopped at once, so that it keeps what a recovery has to look at, and then lists', async () => {
  const { asked } = await step('stop', {})
  expect(asked).toEqual([
    { hostId: 'h1', kind: 'stop-instance', instanceId: id(1), mode: 'immediate' },
    { hostId: 'h2', kind: 'stop-instance', instanceId: id(2), mode: 'immediate' },
  ])
  // one whose host did not answer is left out
  const silent = { fault: { code: 'agent.unreachable', message: 'silent' } }
  const three = clusterOf(member(1, 'one'), member(2, 'two'), member(3, 'three'))
  const listed = await step('list', { stop: { 'stop.one': {}, 'stop.two': {}, 'stop.three': silent } }, three)
  expect(listed.asked.map((t) => t.hostId)).toEqual(['h1', 'h2'])
})

const stopped = { stop: { 'stop.one': {}, 'stop.two': {} } }

test('what the members have is compared before anything is brought; what nobody has is named', async () => {
  const results = {
    ...stopped,
    list: { 'list.one': told('primary', [1]), 'list.two': told('standby', [2, 3]) },
  }
  const { outcome } = await step('judge', results)
  expect(outcome).toMatchObject({
    word: 'next',
    result: { recovered: 'two', blocks: 2, recovery: { instanceId: id(2), blocks: 2 } },
  })
  expect(JSON.stringify(outcome)).toMatch(
    /\\"two\\" gets 2 pages .* from \\"one\\"; \\"one\\" then takes 1 torn pages/,
  )
  const lost = { ...stopped, list: { 'list.one': told('primary', [2]), 'list.two': told('standby', [2]) } }
  expect((await step('judge', lost)).outcome).toMatchObject({
    word: 'fail',
    fault: { code: 'recover.whole_nowhere', detail: 'base/5/16384, block 2.' },
  })
  // what is none of a list counts for nothing
  const wrong = { ...stopped, list: { 'list.one': told('primary'), 'list.two': { list: '/etc/passwd' } } }
  expect((await step('judge', wrong)).outcome).toMatchObject({
    word: 'fail',
    fault: { code: 'recover.no_standby' },
  })
})

/** Results of the steps up to `judge`. */
async function judged() {
  const results = {
    ...stopped,
    list: { 'list.one': told('primary', [1]), 'list.two': told('standby', [2, 3]) },
  }
  const { outcome } = await step('judge', results)
  return { ...results, judge: (outcome as { result: object }).result }
}

test('WAL and pages go from the primary’s host to the standby’s by numbers, and the header last', async () => {
  const results = await judged()
  const answer = ({ kind }: { kind: string }) =>
    kind === 'read-copies' ? { data: 'AAAA', crc32: 1, damaged: [] } : { bytes: 1 }
  const wal = await step('wal', results, both, answer)
  expect(wal.asked[0]).toMatchObject({
    hostId: 'h2',
    piece: { kind: 'begin', bytes: 2 * 8_220 + 16_777_216 },
  })
  expect(wal.asked[1]).toMatchObject({
    hostId: 'h1',
    control: '0'.repeat(64),
    piece: { kind: 'wal', timeline: 1, segment: 2, offset: 0, length: 1_048_576 },
  })
  expect(wal.asked[2]).toMatchObject({
    hostId: 'h2',
    piece: { kind: 'wal', segment: 2, offset: 0, data: 'AAAA' },
  })
  expect(wal.asked).toHaveLength(1 + 2 * 16)
  const pages = await step('pages', results, both, answer)
  expect(pages.asked).toMatchObject([
    { hostId: 'h1', piece: { kind: 'pages', blocks: [{ relation: 16_384, block: 2 }, { block: 3 }] } },
    { hostId: 'h2', piece: { kind: 'pages', first: 0, data: 'AAAA' } },
  ])
  const origin = await step('origin', results)
  expect(origin.asked).toMatchObject([
    { hostId: 'h2', piece: { kind: 'origin', header: 'header of the primary' } },
  ])
  // nothing is written to the primary's host
  for (const { asked } of [wal, pages, origin])
    expect(asked.filter((t) => t.hostId === 'h1' && t.kind !== 'read-copies')).toEqual([])
})

test('what is torn on the primary, too, is read on the host of another standby, at its place in the list', async () => {
  const three = clusterOf(member(1, 'one'), member(2, 'two'), member(3, 'three'))
  const before = {
    stop: { 'stop.one': {}, 'stop.two': {}, 'stop.three': {} },
    list: {
      'list.one': told('primary', [3, 9]),
      'list.two': told('standby', [2, 3, 4]),
      // it needs the other one as well, and lacks more
      'list.three': told('standby', [5, 6, 7, 8, 9]),
    },
  }
  const { outcome } = await step('judge', before, three)
  expect(JSON.stringify(outcome)).toMatch(/; 1 of the pages come from \\"three\\"; /)
  const results = { ...before, judge: (outcome as { result: object }).result }
  const pages = await step('pages', results, three, ({ kind }) =>
    kind === 'read-copies' ? { data: 'AAAA', crc32: 1, damaged: [] } : { bytes: 1 },
  )
  expect(pages.asked).toMatchObject([
    { hostId: 'h1', instanceId: id(1), piece: { blocks: [{ block: 2 }] } },
    { hostId: 'h2', piece: { kind: 'pages', first: 0 } },
    { hostId: 'h3', instanceId: id(3), piece: { blocks: [{ block: 3 }] } },
    { hostId: 'h2', piece: { kind: 'pages', first: 1 } },
    { hostId: 'h1', instanceId: id(1), piece: { blocks: [{ block: 4 }] } },
    { hostId: 'h2', piece: { kind: 'pages', first: 2 } },
  ])
})

test('with a base backup what is torn on both is read of it, on the primary’s host, at its place in the list', async () => {
  const input = { backupDirectory: '/srv/base' }
  const before = {
    ...stopped,
    list: { 'list.one': told('primary', [3, 9]), 'list.two': told('standby', [2, 3, 4]) },
  }
  expect((await step('judge', before)).outcome).toMatchObject({ fault: { code: 'recover.whole_nowhere' } })
  const { outcome } = await step('judge', before, both, undefined, input)
  expect(JSON.stringify(outcome)).toMatch(/; 1 of the pages come from the base backup; /)
  const results = { ...before, judge: (outcome as { result: object }).result }
  const restore = await step('restore', results, both, undefined, input)
  // all that the standby lacks: what is damaged on the primary without being listed is only seen when it is read
  expect(restore.asked).toEqual([
    {
      hostId: 'h1',
      kind: 'restore-pages',
      instanceId: id(1),
      control: '0'.repeat(64),
      backupDirectory: '/srv/base',
      walDirectory: null,
      redo: '0/1000000',
      blocks: 3,
      relations: list('standby', [2, 3, 4]).relations,
    },
  ])
  const answer = ({ kind }: { kind: string }) =>
    kind === 'read-copies' ? { data: 'AAAA', crc32: 1, damaged: [] } : { bytes: 1 }
  const pages = await step('pages', results, both, answer, input)
  expect(pages.asked).toMatchObject([
    { hostId: 'h1', piece: { blocks: [{ block: 2 }], restored: { first: 0, all: false } } },
    { hostId: 'h2', piece: { first: 0 } },
    { hostId: 'h1', piece: { blocks: [{ block: 3 }], restored: { first: 1, all: true } } },
    { hostId: 'h2', piece: { first: 1 } },
    { hostId: 'h1', piece: { blocks: [{ block: 4 }], restored: { first: 2, all: false } } },
    { hostId: 'h2', piece: { first: 2 } },
  ])
  expect((await step('drop', results, both, undefined, input)).asked).toEqual([
    { hostId: 'h1', kind: 'drop-restored-pages', instanceId: id(1) },
  ])
  const names = (more: object) => recoverCluster.plan(more as never, { state: null }).map(({ name }) => name)
  expect(names(input)).toEqual([
    ...['stop', 'list', 'judge', 'restore', 'wal', 'pages', 'origin'],
    ...['standby', 'primary', 'others', 'tidy', 'drop', 'observe'],
  ])
  expect(names({})).toEqual(names(input).filter((name) => !['restore', 'drop'].includes(name)))
  const undone = recoverCluster.undo?.({ results, input } as never, both as never, {} as never)
  expect(undone?.at(-1)).toMatchObject({
    after: 'restore',
    hostId: 'h1',
    task: { kind: 'drop-restored-pages' },
  })
})

test('a page that is not whole on the primary either ends it by name', async () => {
  const damaged = [{ tablespace: 1663, database: 5, relation: 16_384, fork: 0, block: 3 }]
  const { outcome } = await step('pages', await judged(), both, () => ({ data: '', crc32: 0, damaged }))
  expect(outcome).toMatchObject({
    word: 'fail',
    fault: { code: 'recover.whole_nowhere', detail: 'base/5/16384, block 3.' },
  })
})

test('a failure removes the copies and leaves the members stopped; a standby that has come up stays', async () => {
  const results = await judged()
  const undone = (more: object) =>
    recoverCluster
      .undo?.({ results: { ...results, ...more }, input: {} } as never, both as never, {} as never)
      .map(({ hostId, after, task }) => `${after}: ${task.kind} on ${hostId}`)
  expect(recoverCluster.undo?.({ results: stopped } as never, both as never, {} as never)).toEqual([])
  expect(undone({})).toEqual([
    'primary: stop-instance on h1',
    'standby: stop-instance on h2',
    'wal: write-copies on h2',
  ])
  expect(undone({ standby: { postmasterPid: 1 } })).toEqual([
    'primary: stop-instance on h1',
    'wal: write-copies on h2',
  ])
  expect(recoverCluster.retryAfresh).toBe(true)
})
