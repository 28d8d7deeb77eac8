import { showHostCheck } from '@floe/db'
import { waitUntil } from '@floe/testkit'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import { controllersFixture } from './testing/controllers-fixture'
import type { FakeAgent } from './testing/fake-agent'

let fixture: Awaited<ReturnType<typeof controllersFixture>>
beforeEach(async () => {
  fixture = await controllersFixture(inject('engineConnectionString'))
})
afterEach(() => fixture.remove())

const known = (of: FakeAgent) => showHostCheck(fixture.db.pool, of.hostId)
const tasksOf = (of: FakeAgent) => [...of.tasks.values()].map((task) => task.input.task.kind)

test('a host is checked by itself once it answers, by one of all controllers, and so is one that comes later', async () => {
  const { host } = fixture
  for (let i = 0; i < 2; i++) fixture.start(undefined, undefined, {})
  await waitUntil('it is checked', async () => (await known(host)).last !== null, 30_000)
  expect(await known(host)).toMatchObject({
    last: { actorName: 'Controller', check: { host: 'double' } },
    failed: null,
    openSince: null,
  })
  const later = await fixture.addHost()
  const failing = await fixture.addHost()
  failing.failing.set('check-host', { code: 'host.check_failed', message: 'no awk' })
  await waitUntil('the later one is checked', async () => (await known(later)).last !== null, 30_000)
  await waitUntil('the failing one was', async () => (await known(failing)).failed !== null, 30_000)
  // by then the first one was looked at again, and the failing one is not asked again at once
  for (const of of [host, later, failing]) expect(tasksOf(of)).toEqual(['check-host'])
})
