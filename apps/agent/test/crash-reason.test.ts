import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskResult } from '@floe/agent-contract'
import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'
import { StandbyFixture } from './standby-fixture'

let f: AgentFixture
let s: StandbyFixture
beforeAll(async () => {
  f = await AgentFixture.start(4)
  s = new StandbyFixture(f)
})
afterAll(() => f.remove())

/** FATALs of its walreceiver in the server's own log. */
function walreceiverFatals(id: string): string[] {
  const directory = join(f.installation.instancesDirectory, id, 'log')
  return readdirSync(directory)
    .filter((file) => file.endsWith('.json'))
    .flatMap((file) => readFileSync(join(directory, file), 'utf8').split('\n').filter(Boolean))
    .map((line) => JSON.parse(line))
    .filter((e) => e.backend_type === 'walreceiver' && e.error_severity === 'FATAL')
    .map((e) => e.message)
}

test('a primary that is killed after a switchover is not said to have ended of what it said as a standby', async () => {
  const a = await s.primary('gamma')
  const { id: b } = await s.standby(a, 'gamma-2')
  await s.admit(a, a, 'gamma', false)
  const back = await s.admitPrepared(b, 'gamma', null, true)
  await s.must({ kind: 'checkpoint-instance', instanceId: a })
  const { shutdownLsn } = await s.must<TaskResult<'demote-instance'>>({
    kind: 'demote-instance',
    instanceId: a,
    upstream: back,
  })
  // with its primary stopped, it cannot connect
  const fatals = await waitUntil('its walreceiver has said so', () => {
    const found = walreceiverFatals(b)
    return found.length > 0 ? found : null
  })
  await s.must({
    kind: 'promote-instance',
    instanceId: b,
    beyondLsn: shutdownLsn,
    atLeastLsn: null,
    standbyNames: '',
  })
  process.kill((await f.observed(b))?.postmasterPid as number, 'SIGKILL')
  const { because } = await f.waitForState(b, 'crashed')
  for (const fatal of fatals) expect(because).not.toContain(fatal)
  expect(because).toMatch(/^it ended without a word in its log: killed from outside or by the kernel/)
})
