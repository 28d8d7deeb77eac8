import { randomUUID } from 'node:crypto'
import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'

/** What an agent does with a primary whose cluster fails over by itself. */
let f: AgentFixture
let id: string
beforeAll(async () => {
  f = await AgentFixture.start(8, undefined, { startCrashed: true })
})
afterAll(() => f.remove())
beforeEach(async () => {
  id = await f.createRunning()
  await f.query(id, 'create table kept as select 42 as answer')
})

const heldBack = (more: object = {}) => ({
  isolatedAfterMs: 3_600_000,
  isolatedPrimary: 'read-only',
  ...more,
})
const tell = (timeline: number, more: object = {}, primary = id) =>
  f.must({
    kind: 'keep-primary',
    instanceId: id,
    primary: { instanceId: primary, timeline, ...more },
  } as never)
const named = (timeline: number, primary = id) => ({ instanceId: primary as never, timeline })
const kill = async () => {
  process.kill((await f.observed(id))?.postmasterPid as number, 'SIGKILL')
  await f.waitForState(id, 'crashed')
}
const refusal = async (task: object) => (await f.run({ instanceId: id, ...task } as never)).fault

test('it starts as a primary by an order only that names it, of no older timeline', async () => {
  await tell(3, { heldBack: heldBack() })
  await kill()
  // another instance of the host, told nothing, is started by itself: so long is waited for this one
  const other = await f.createRunning()
  const pid = (await f.observed(other))?.postmasterPid as number
  process.kill(pid, 'SIGKILL')
  await waitUntil('the other one is back', async () => {
    const seen = await f.observed(other)
    return seen?.state === 'running' && seen.postmasterPid !== pid
  })
  expect((await f.observed(id))?.state).toBe('crashed')
  const start = { kind: 'start-instance' }
  expect(await refusal(start)).toMatchObject({ code: 'instance.held_back' })
  expect(await refusal({ ...start, primary: named(2) })).toMatchObject({ code: 'instance.held_back' })
  expect(await refusal({ ...start, primary: named(4, randomUUID()) })).toMatchObject({
    code: 'instance.held_back',
    detail: expect.stringContaining('another member is the primary'),
  })
  await f.must({ kind: 'start-instance', instanceId: id, primary: named(3) } as never)
  expect(await f.query(id, 'select answer from kept')).toEqual([{ answer: 42 }])
})

test('a restart that no order allows stops nothing, and an agent that was killed remembers', async () => {
  await tell(1, { heldBack: heldBack() })
  await f.agent.end()
  await f.agent.start()
  const { postmasterPid } = await f.waitForState(id, 'running')
  expect(await refusal({ kind: 'restart-instance', mode: 'fast' })).toMatchObject({
    code: 'instance.held_back',
  })
  expect(await f.observed(id)).toMatchObject({ state: 'running', postmasterPid })
  await f.must({ kind: 'restart-instance', instanceId: id, mode: 'fast', primary: named(1) } as never)
  // told that it is not held back any more, it is started by itself again
  await tell(1, { heldBack: null })
  await kill()
  await waitUntil('it is back', async () => (await f.observed(id))?.state === 'running', 30_000)
})

test('a promotion of before is not told over a newer one', async () => {
  await tell(5, { heldBack: heldBack() })
  expect(await refusal({ kind: 'keep-primary', primary: { ...named(4), heldBack: null } })).toMatchObject({
    code: 'primary.newer_known',
  })
  expect((await f.observed(id))?.primaryKnown).toMatchObject({ timeline: 5, heldBack: heldBack() })
})

test('one that neither a standby nor the console reaches takes no write, until it is asked again', async () => {
  // reports are what the console asks for: nothing else here may ask for one meanwhile
  const [{ port }] = [(await f.observed(id)) as { port: number }]
  const writer = await f.connectTo(port)
  const ended = new Promise((resolve) => writer.on('error', resolve))
  await tell(1, { heldBack: heldBack({ isolatedAfterMs: 5_000 }) })
  await ended
  const readOnly = () => f.queryPort<{ r: string }>(id, 'show default_transaction_read_only')
  await waitUntil('new transactions are read-only', async () =>
    JSON.stringify(await readOnly().catch(() => [])).includes('on'),
  )
  expect(await f.queryPort(id, 'select answer from kept')).toEqual([{ answer: 42 }])
  await expect(f.queryPort(id, 'insert into kept values (1)')).rejects.toThrow('read-only')
  await f.observed(id)
  await waitUntil('it takes writes again', async () =>
    JSON.stringify(await readOnly()).includes('off') ? true : void (await f.observed(id)),
  )
  await f.queryPort(id, 'insert into kept values (1)')
})

test('or is stopped, where its cluster asks for that', async () => {
  await tell(1, { heldBack: heldBack({ isolatedAfterMs: 5_000, isolatedPrimary: 'demote' }) })
  await waitUntil('it answers nobody', async () =>
    f.queryPort(id, 'select 1').then(
      () => false,
      () => true,
    ),
  )
  await f.waitForState(id, 'stopped')
  expect(await refusal({ kind: 'start-instance' })).toMatchObject({ code: 'instance.held_back' })
})
