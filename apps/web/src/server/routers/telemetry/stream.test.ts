import { randomUUID } from 'node:crypto'
import { connect, createServer, type Socket } from 'node:net'
import { insertSamples } from '@floe/db'
import { InstanceId } from '@floe/domain'
import { waitUntil } from '@floe/testkit'
import { createTRPCClient, httpSubscriptionLink, retryLink } from '@trpc/client'
import { EventSource } from 'eventsource'
import superjson from 'superjson'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import type { AppRouter } from '../../router'
import { type TelemetryAgent, telemetryAgent } from '../../testing/telemetry-agent'
import {
  serveConsole,
  type ThrowawayConsole,
  throwawayConsole,
  untracked,
} from '../../testing/throwaway-console'

let agent: TelemetryAgent
let console_: ThrowawayConsole
let instanceId: InstanceId
let authorization: string
const ends: (() => Promise<void> | void)[] = []

beforeEach(async () => {
  agent = await telemetryAgent()
  console_ = await throwawayConsole({
    engine: inject('engineConnectionString'),
    authority: agent.authority,
    identity: agent.identity,
  })
  instanceId = InstanceId.parse(randomUUID())
  await console_.database.pool.query(`INSERT INTO host (id, name, "agentUrl") VALUES ($1, 'h', $2)`, [
    agent.hostId,
    agent.url,
  ])
  await console_.database.pool.query(
    `INSERT INTO instance (id, name, "hostId", intent) VALUES ($1, 'demo', $2, 'running')`,
    [instanceId, agent.hostId],
  )
  authorization = (await console_.token()).authorization
})

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
  await console_.close()
  await agent.stop()
})

/** What a browser does: subscribe, and come back by itself when the connection breaks. */
function browser(url: string, afterSeq: number | null) {
  class WithToken extends EventSource {
    constructor(at: string | URL) {
      super(at, {
        fetch: (u, init) => fetch(u, { ...init, headers: { ...init?.headers, authorization } }),
      })
    }
  }
  const client = createTRPCClient<AppRouter>({
    links: [
      retryLink({ retry: () => true, retryDelayMs: () => 50 }),
      httpSubscriptionLink({ url, transformer: superjson, EventSource: WithToken as never }),
    ],
  })
  const seen: number[] = []
  let connections = 0
  const subscription = client.telemetry.stream.subscribe(
    { instances: [{ instanceId, afterSeq }], metrics: ['tps'] },
    {
      onConnectionStateChange: (state) => {
        if (state.state === 'connecting') connections++
      },
      onData: ({ data }) => {
        if (data.type === 'samples') seen.push(...data.samples.map((s) => s.seq))
      },
    },
  )
  ends.push(() => subscription.unsubscribe())
  return { seen, connections: () => connections }
}

/** A wire that can be cut while both ends live. */
async function wire(to: number) {
  const open = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(to, '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one)
      one.pipe(other)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        open.delete(one)
        other.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}/api/trpc`,
    cut: () => {
      for (const socket of open) socket.destroy()
    },
  }
}

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
const arrived = (seen: number[], last: number) =>
  waitUntil(`sample ${last} arrives`, () => seen.at(-1) === last, 20_000)

test('a broken connection between browser and console resumes without gap or duplicate', async () => {
  const served = await serveConsole(console_.ports)
  ends.push(() => served.close())
  const cable = await wire(served.port)
  agent.sampleUntil(20)
  const { seen } = browser(cable.url, 10)
  await arrived(seen, 20)
  cable.cut()
  agent.sampleUntil(40)
  await arrived(seen, 40)
  expect(seen).toEqual(numbers(11, 40))
})

test('a broken connection between console and agent resumes without gap or duplicate', async () => {
  const served = await serveConsole(console_.ports)
  ends.push(() => served.close())
  agent.sampleUntil(5)
  const { seen } = browser(served.url, 0)
  await arrived(seen, 5)
  agent.cut()
  agent.sampleUntil(30)
  await arrived(seen, 30)
  expect(seen).toEqual(numbers(1, 30))
})

test('a restarted console goes on where the one before was killed', async () => {
  const first = await serveConsole(console_.ports)
  agent.sampleUntil(8)
  const { seen } = browser(first.url, 0)
  await arrived(seen, 8)
  await first.close()
  console_.ports.feeds.close()
  agent.sampleUntil(300)
  const again = console_.newPorts()
  const second = await serveConsole(again, first.port)
  ends.push(async () => {
    await second.close()
    await again.close()
  })
  await arrived(seen, 300)
  expect(seen).toEqual(numbers(1, 300))
})

test('two browsers share one stream to the agent', async () => {
  const served = await serveConsole(console_.ports)
  ends.push(() => served.close())
  agent.sampleUntil(3)
  const one = browser(served.url, 0)
  const two = browser(served.url, 0)
  await arrived(one.seen, 3)
  await arrived(two.seen, 3)
  agent.sampleUntil(4)
  await arrived(one.seen, 4)
  await arrived(two.seen, 4)
  expect(agent.streams()).toBe(1)
})

test('history and live join: what is stored ends at newestSeq, the stream begins after it', async () => {
  const served = await serveConsole(console_.ports)
  ends.push(() => served.close())
  const now = Date.now()
  agent.ring.push(
    ...numbers(1, 30).map((seq) => ({
      seq,
      at: now - (31 - seq) * 1_000,
      intervalMs: 1_000,
      values: { tps: seq },
    })),
  )
  await insertSamples(console_.database.pool, [{ instanceId, samples: agent.ring.slice(0, 25) }])
  const caller = await console_.callerOf({ authorization })
  const history = await caller.telemetry.history({ instanceId, minutes: 1, metrics: ['tps', 'wal_bytes'] })
  expect(history.newestSeq).toBe(25)
  expect(history.points.map((p) => p.average)).toEqual(numbers(1, 25).map((tps) => [tps, null]))
  const { seen } = browser(served.url, history.newestSeq)
  await arrived(seen, 30)
  expect(seen).toEqual(numbers(26, 30))
})

test('with changes asked for, the stream says what moved', async () => {
  const caller = await console_.callerOf({ authorization })
  const events = await caller.telemetry.stream({ instances: [], changes: true })
  const moved: string[] = []
  const reading = (async () => {
    for await (const sent of events) {
      const [, event] = untracked(sent)
      if (event.type === 'changed') moved.push(`${event.noun} ${event.id}`)
      if (moved.includes(`instance ${instanceId}`)) return
    }
  })()
  await waitUntil('the console listens', () => moved.includes('instance *'))
  await console_.database.pool.query(`UPDATE instance SET intent = 'stopped' WHERE id = $1`, [instanceId])
  await reading
  expect(moved).toContain(`instance ${instanceId}`)
})
