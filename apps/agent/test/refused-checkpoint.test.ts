import { randomUUID } from 'node:crypto'
import type { TaskResult, TaskStatus } from '@floe/agent-contract'
import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'
import { StandbyFixture } from './standby-fixture'

let f: AgentFixture
let s: StandbyFixture
let primary: string
let standby: string
beforeAll(async () => {
  f = await AgentFixture.start(6)
  s = new StandbyFixture(f)
  // so long that a checkpoint begins before the guard has images written again, on a busy machine, too
  primary = await s.primary('torn', { polar_page_repair_grace: '15s' })
  const followed = await s.standby(primary, 'torn-2')
  standby = followed.id
  const { repairVerifier, repairRole } = await s.must<TaskResult<'prepare-page-repair'>>({
    kind: 'prepare-page-repair',
    instanceId: primary,
  })
  const members = [{ name: 'torn', verifier: repairVerifier, role: repairRole }]
  const roles = [repairRole as string]
  await s.must({ kind: 'admit-page-repair', instanceId: primary, members })
  await s.caughtUp(primary, standby)
  await s.must({
    kind: 'set-page-repair-sources',
    instanceId: standby,
    sources: [],
    members: ['torn'],
    roles,
  })
  const source = (await f.observed(standby))?.connection as { host: string; port: number }
  await s.must({
    kind: 'set-page-repair-sources',
    instanceId: primary,
    sources: [{ name: 'torn-2', host: source.host, port: source.port }],
    members: [],
  })
})
afterAll(() => f.remove())

const protection = async () =>
  (await f.read.protection.read.query({ instanceId: primary as never })).protection
const set = (name: string, value: string) =>
  f.run({ kind: 'change-settings', instanceId: primary, changes: [{ name, value }] })
const lines = (status: TaskStatus) => status.log.map((line) => line.text).join('\n')

/** Images are off by a source that is there, and then is not. */
async function loseSource(): Promise<void> {
  await waitUntil(
    'the standby protects it',
    async () => (await protection())?.imagesInForce === false,
    120_000,
  )
  await s.must({ kind: 'stop-instance', instanceId: standby, mode: 'immediate' })
}

test('full-page writes stay on while the policy is off, though a source is healthy', async () => {
  await waitUntil('the source is healthy', async () => (await protection())?.sources[0]?.healthy)
  // the engine names it as the controller looks for it
  const port = (await f.observed(standby))?.connection?.port
  expect((await protection())?.sources[0]?.source).toMatch(new RegExp(`^[^:]+:${port}/postgres$`))
  expect((await set('polar_page_repair_policy', 'off')).state).toBe('succeeded')
  expect(await set('full_page_writes', 'off')).toMatchObject({
    state: 'failed',
    fault: {
      code: 'setting.unprotected',
      detail: expect.stringContaining('polar_page_repair_policy is off'),
    },
  })
  expect((await set('polar_page_repair_policy', 'checksum')).state).toBe('succeeded')
  expect((await set('full_page_writes', 'off')).state).toBe('succeeded')
})

test('a checkpoint that the guard refuses is tried once more, with images', async () => {
  await loseSource()
  const status = await f.run({ kind: 'checkpoint-instance', instanceId: primary })
  expect(status.state).toBe('succeeded')
  expect(lines(status)).toContain('trying once more')
}, 240_000)

test('so is a copy that begins with one', async () => {
  const copy = randomUUID()
  const upstream = await s.admit(primary, copy, 'torn-3')
  await s.must({ kind: 'start-instance', instanceId: standby })
  await loseSource()
  const status = await s.run({ kind: 'clone-standby', instanceId: copy, upstream, replace: false })
  expect([status.state, status.fault]).toEqual(['succeeded', null])
  expect(lines(status)).toContain('trying once more')
  await s.must({ kind: 'follow-upstream', instanceId: copy, upstream })
}, 240_000)
