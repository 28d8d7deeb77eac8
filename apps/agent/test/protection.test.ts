import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'

let f: AgentFixture
let id: string
beforeAll(async () => {
  f = await AgentFixture.start(2)
  id = await f.createRunning()
})
afterAll(() => f.remove())

const protection = async () => (await f.read.protection.read.query({ instanceId: id as never })).protection
test('a new instance says that images protect it', async () => {
  expect(await protection()).toMatchObject({
    state: 'full_page_writes',
    fullPageWrites: true,
    imagesInForce: true,
    guard: true,
    sources: [],
  })
})

test('full-page writes off without a source: images stay in force, and the agent says both', async () => {
  await f.query(id, 'ALTER SYSTEM SET full_page_writes = off')
  await f.must({ kind: 'reload-instance', instanceId: id })
  const seen = await waitUntil('the engine knows it', async () => {
    const p = await protection()
    return p && !p.fullPageWrites ? p : null
  })
  expect(seen.imagesInForce).toBe(true)
})

test('the guard off is an override, and says since when', async () => {
  await f.query(id, 'ALTER SYSTEM SET polar_page_repair_guard = off')
  await f.must({ kind: 'reload-instance', instanceId: id })
  const seen = await waitUntil('the engine knows it', async () => {
    const p = await protection()
    return p?.state === 'overridden' && p.imagesInForce === false ? p : null
  })
  expect(Math.abs(Date.now() - seen.since)).toBeLessThan(60_000)
})

test('a database without the views is said to have none', async () => {
  await f.query(id, 'DROP EXTENSION page_repair')
  expect(await protection()).toBeNull()
})
