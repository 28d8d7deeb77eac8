import { randomUUID } from 'node:crypto'
import { inTransaction, revokeHost } from '@floe/db'
import { type FaultError, HostId, InstanceId } from '@floe/domain'
import { makeTestAuthority, waitUntil } from '@floe/testkit'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import { type TelemetryAgent, telemetryAgent } from './testing/telemetry-agent'
import { type ThrowawayConsole, throwawayConsole } from './testing/throwaway-console'

let agent: TelemetryAgent
let it: ThrowawayConsole
let instanceId: InstanceId
let identity: string

beforeEach(async () => {
  agent = await telemetryAgent()
  identity = agent.identity
  it = await throwawayConsole({
    engine: inject('engineConnectionString'),
    authority: agent.authority,
    identity: () => identity,
  })
  instanceId = InstanceId.parse(randomUUID())
  await it.database.pool.query(`INSERT INTO host (id, name, "agentUrl") VALUES ($1, 'h', $2)`, [
    agent.hostId,
    agent.url,
  ])
  await it.database.pool.query(
    `INSERT INTO instance (id, name, "hostId", intent) VALUES ($1, 'demo', $2, 'running')`,
    [instanceId, agent.hostId],
  )
  agent.sampleUntil(3)
})
afterEach(async () => {
  await it.close()
  await agent.stop()
})

const read = () => it.ports.agents.feedSource(instanceId).read(-1, 10)
const codeOf = (asked: Promise<unknown>) =>
  asked.then(
    () => 'answered',
    (error: FaultError) => error.fault?.code ?? String(error),
  )

/** A stream as a feed opens it, and how it ended. */
function openStream() {
  const seen: number[] = []
  let ended: unknown
  const stream = it.ports.agents.feedSource(instanceId).open(0, {
    sample: (sample) => seen.push(sample.seq),
    ended: (error) => {
      ended = error ?? 'ended'
    },
  })
  return { seen, ended: () => ended, close: stream.close }
}

test('a host that is revoked by whomever is not listened to any more, also not over what is open', async () => {
  const stream = openStream()
  await waitUntil('samples come', () => stream.seen.length === 3)
  // as another process of the console would, so that this one is only told by the database
  await inTransaction(it.database.as.web.pool, (tx) => revokeHost(tx, agent.hostId, 'Tester'))
  await waitUntil('the stream is gone', () => agent.streams() === 0)
  expect(await codeOf(read())).toBe('host.revoked')
  agent.sampleUntil(6)
  stream.close()
  expect(stream.seen).toEqual([1, 2, 3])
})

test('a new address is used without waiting for the old one to be forgotten', async () => {
  expect(await codeOf(read())).toBe('answered')
  const stream = openStream()
  await waitUntil('samples come', () => stream.seen.length === 3)
  await it.database.pool.query(`UPDATE host SET "agentUrl" = 'https://127.0.0.1:1' WHERE id = $1`, [
    agent.hostId,
  ])
  await waitUntil('it is asked there', async () => (await codeOf(read())) === 'agent.unreachable')
  stream.close()
})

test('a renewed certificate of its own is used at the next question', async () => {
  expect(await codeOf(read())).toBe('answered')
  identity = await (await makeTestAuthority()).console('read')
  expect(await codeOf(read())).not.toBe('answered')
  identity = agent.identity
  expect(await codeOf(read())).toBe('answered')
})

test('a host is asked itself about what has no row, as long as it is there and not revoked', async () => {
  const ask = (hostId: string) =>
    codeOf(it.ports.agents.probeHost(HostId.parse(hostId), (trpc) => trpc.report.read.query({ after: null })))
  // the agent's own answer
  expect(await ask(agent.hostId)).toBe('agent.not_in_test')
  expect(await ask(randomUUID())).toBe('host.not_found')
  await inTransaction(it.database.pool, (tx) => revokeHost(tx, agent.hostId, 'Ada'))
  expect(await ask(agent.hostId)).toBe('host.revoked')
})
