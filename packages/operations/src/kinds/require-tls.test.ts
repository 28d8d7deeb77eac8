import { expect, test } from 'vitest'
import { requireTls } from './require-tls'

const id = (n: number) => `0000000${n}-0000-4000-8000-000000000000`
const member = (n: number, change: object = {}) => ({
  instanceId: id(n),
  name: `one-${n}`,
  hostId: `host-${n}`,
  hostName: `h${n}`,
  hostState: 'online',
  state: 'running',
  memberRole: 'standby',
  remoteAccess: null,
  ...change,
})

async function asked(members: object[]): Promise<string[]> {
  const asked: string[] = []
  const status = { state: 'running', log: [], message: null, progress: null }
  const context = {
    operationId: id(9),
    input: { instanceId: id(1) },
    step: { name: 'require', attempt: 1, startedAt: new Date(), taskLogSeq: 0 },
    results: {},
    now: new Date(),
    cancelAskedAt: null,
    readCluster: async () => ({ members, control: 'agent' }),
    agentOf: (hostId: string) => ({
      checkTask: async () => ({ ...status, state: 'not-started' }),
      startTask: async ({ task }: { task: { kind: string } }) => {
        asked.push(`${hostId}: ${task.kind}`)
        return status
      },
    }),
  }
  await requireTls.steps.require.run(context as never)
  return asked.sort()
}

test('every member that runs is asked: any of them may be the primary tomorrow', async () => {
  const members = [
    member(1, { memberRole: 'primary' }),
    member(2),
    member(3, { hostState: 'offline' }),
    member(4, { memberRole: 'fenced' }),
    member(5, { state: 'stopped' }),
  ]
  expect(await asked(members)).toEqual(['host-1: require-tls', 'host-2: require-tls'])
})

test('the instance itself is asked in any case, so that a person reads why it cannot be', async () => {
  expect(await asked([member(1, { state: 'stopped' })])).toEqual(['host-1: require-tls'])
})

test('it has succeeded once a report says so', async () => {
  const observe = (remoteAccess: object | null, waitedMs: number) =>
    requireTls.steps.observe.run({
      input: { instanceId: id(1) },
      step: { startedAt: new Date(0) },
      results: { require: { sessionsWithoutTls: 2 } },
      now: new Date(waitedMs),
      cancelAskedAt: null,
      readCluster: async () => ({ members: [member(1, { remoteAccess })] }),
    } as never)
  const access = { tls: true, listens: true, sessionsWithoutTls: 2 }
  expect(await observe({ ...access, withoutTls: true }, 0)).toMatchObject({ word: 'wait' })
  expect(await observe({ ...access, withoutTls: false }, 0)).toMatchObject({
    word: 'next',
    log: [{ text: '2 sessions opened without TLS before will continue' }],
  })
  expect(await observe(null, 60_000)).toMatchObject({ word: 'next', result: { notSeen: true } })
})
