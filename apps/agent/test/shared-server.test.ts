import { createServer } from 'node:net'
import type { SharedServer } from '@floe/domain'
import type { MetricName, Sample } from '@floe/telemetry'
import { freePorts, waitUntil } from '@floe/testkit'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentFixture, asInstanceId } from './agent-fixture'

let f: AgentFixture
let id: string
let port: number
const clients: pg.Client[] = []
beforeAll(async () => {
  f = await AgentFixture.start(4)
  port = (await freePorts(1))[0] as number
  id = await f.createRunning({
    settings: {
      polar_ss_port: String(port),
      polar_enable_shared_server: 'on',
      polar_ss_backend_max_count: '2',
      polar_ss_quantum: '0',
    },
  })
})
afterAll(async () => {
  await Promise.all(clients.map((c) => c.end().catch(() => {})))
  await f?.remove()
})

const reported = async (instanceId = id) => (await f.observed(instanceId))?.sharedServer
const read = async (instanceId = id) =>
  (await f.read.sharedServer.read.query({ instanceId: asInstanceId(instanceId) })).sharedServer
const readUntil = (what: string, holds: (s: SharedServer) => boolean) =>
  waitUntil(what, async () => {
    const seen = await read()
    return seen && holds(seen) ? seen : null
  })
async function newestSample(): Promise<Sample | null> {
  const { newestSeq } = await f.read.telemetry.read.query({ instanceId: asInstanceId(id), afterSeq: 1e9 })
  const { samples } = await f.read.telemetry.read.query({
    instanceId: asInstanceId(id),
    afterSeq: (newestSeq ?? 0) - 1,
  })
  return (samples.at(-1) as Sample | undefined) ?? null
}
const sampledUntil = (what: string, holds: (values: Partial<Record<MetricName, number | null>>) => boolean) =>
  waitUntil(what, async () => {
    const sample = await newestSample()
    return sample && holds(sample.values) ? sample.values : null
  })

test('sessions, workers and the reason why one is pinned are read and sampled', async () => {
  for (let n = 0; n < 6; n++) clients.push(await f.connectTo(port))
  for (const client of clients) await client.query('select 1')
  // counts and pools are two queries, and a session that logs in is in one of them first
  const shared = await readUntil(
    'six sessions share two workers',
    (s) => s.counts?.shared === 6 && s.pools[0]?.sessions === 6,
  )
  expect(shared).toMatchObject({ port, enabled: true, dispatcher: 'running', workersMax: 2, pinned: [] })
  expect(shared.counts).toMatchObject({ dedicated: 0, login: 0 })
  expect(shared.counts?.workers).toBeLessThanOrEqual(2 + 2)
  expect(shared.pools).toMatchObject([{ database: 'postgres', user: 'postgres', sessions: 6, dedicated: 0 }])
  expect(shared.counts?.transactions).toBeGreaterThanOrEqual(6)

  const [first] = clients as [pg.Client]
  await first.query('create temporary table kept (n int)')
  // a session is asked to leave, and says why it cannot, when somebody waits for its worker
  const pinned = await waitUntil('it is pinned', async () => {
    await first.query('select 1')
    await Promise.all(clients.slice(1).map((c) => c.query('select pg_sleep(0.05)')))
    const seen = await read()
    return seen?.counts?.dedicated === 1 ? seen : null
  })
  expect(pinned.pinned).toEqual([{ reason: 'temporary objects', sessions: 1 }])
  expect(pinned.counts).toMatchObject({ shared: 5, dedicated: 1 })
  expect(pinned.counts?.waitP99Ms).toBeGreaterThan(0)
  await sampledUntil(
    'samples tell it, too',
    (v) => v.sessions_shared === 5 && v.sessions_dedicated === 1 && (v.workers ?? 0) >= 1,
  )
})

test('transactions and waits of an interval are sampled', async () => {
  const [, ...others] = clients
  let busy = true
  const load = Promise.all(
    others.map(async (client) => {
      while (busy) await client.query('select pg_sleep(0.01)')
    }),
  )
  try {
    const values = await sampledUntil(
      'an interval with waits',
      (v) => (v.shared_transactions ?? 0) > 0 && typeof v.session_wait_p99 === 'number',
    )
    expect(values.session_wait_p99).toBeGreaterThanOrEqual(values.session_wait_p50 ?? Number.NaN)
  } finally {
    busy = false
    await load
  }
  const native = await f.connect(id)
  try {
    await sampledUntil('a native session', (v) => (v.sessions_native ?? 0) >= 1)
  } finally {
    await native.end()
  }
  // without a transaction nobody waits: that is unknown, not 0
  const idle = await sampledUntil('an interval without transactions', (v) => v.shared_transactions === 0)
  expect(idle.session_wait_p50 ?? null).toBeNull()
})

test('a dispatcher that is stopped by a signal, and one that is there again', async () => {
  const [row] = await f.query<{ pid: number }>(id, 'select pid from polar_stat_dispatcher')
  const pid = row?.pid as number
  process.kill(pid, 'SIGSTOP')
  try {
    await waitUntil('it is reported as stopped', async () => (await reported())?.dispatcher === 'stopped')
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  await waitUntil('it is reported as running', async () => (await reported())?.dispatcher === 'running')
})

test('with polar_ss_share_tls a client that uses TLS shares backends, and the report says so', async () => {
  expect(await reported()).toMatchObject({ enabled: true, sharesTls: false })
  const tlsClient = async () => {
    const client = await f.connectTo(port, 'open sesame', { rejectUnauthorized: false })
    clients.push(client)
    const { rows } = await client.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')
    expect(rows).toEqual([{ ssl: true }])
  }
  const before = (await read())?.counts
  await tlsClient()
  await readUntil('it is native', (s) => s.tls && s.counts?.native === (before?.native ?? 0) + 1)
  await f.query(id, 'alter system set polar_ss_share_tls = on')
  await f.query(id, 'select pg_reload_conf()')
  await waitUntil('it is reported', async () => (await reported())?.sharesTls === true)
  await tlsClient()
  await readUntil('it is shared', (s) => !s.tls && s.counts?.shared === (before?.shared ?? 0) + 1)
})

test('several dispatchers are counted together, and one that does nothing is told by its number', async () => {
  const [shared] = (await freePorts(1)) as [number]
  const several = await f.createRunning({
    settings: {
      polar_ss_port: String(shared),
      polar_enable_shared_server: 'on',
      polar_ss_dispatcher_count: '2',
    },
  })
  const dispatchers = async () => (await reported(several))?.dispatchers
  await waitUntil('both go on', async () => (await dispatchers())?.every((d) => d.active === true))
  for (let n = 0; n < 4; n++) clients.push(await f.connectTo(shared))
  // counts and pools are two queries here, too
  const seen = await waitUntil('four sessions', async () => {
    const now = await read(several)
    const pooled = now?.pools.reduce((sum, { sessions }) => sum + sessions, 0)
    return now?.counts?.shared === 4 && pooled === 4 ? now : null
  })
  expect(seen.counts).toMatchObject({ dedicated: 0 })
  expect(seen.pools).toMatchObject([
    { sessions: 2, dispatcher: 1 },
    { sessions: 2, dispatcher: 2 },
  ])
  const [row] = await f.query<{ pid: number }>(
    several,
    'select pid from polar_stat_dispatcher where dispatcher = 2',
  )
  const pid = row?.pid as number
  process.kill(pid, 'SIGSTOP')
  try {
    await waitUntil('it is told', async () => (await dispatchers())?.[1]?.active === false)
    expect(await dispatchers()).toMatchObject([
      { number: 1, state: 'running', active: true },
      { number: 2, state: 'stopped', active: false },
    ])
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  await waitUntil('it goes on', async () => (await dispatchers())?.[1]?.active === true)
  // version 1.0 of the extension shows both as one
  await f.query(several, "drop extension shared_server; create extension shared_server version '1.0'")
  await waitUntil('which of them goes on is unknown', async () => {
    const now = await reported(several)
    return now?.dispatcher === 'running' && now.dispatchers === undefined
  })
  expect((await read(several))?.counts?.shared).toBe(4)
})

test('without the port it is off, and nothing of it is sampled', async () => {
  const off = await f.createRunning()
  await waitUntil('it is reported', async () => (await reported(off)) ?? null)
  expect(await read(off)).toMatchObject({
    port: null,
    dispatcher: null,
    counts: null,
    pinned: [],
    pools: [],
  })
  const sample = await waitUntil('a sample', async () => {
    const { samples } = await f.read.telemetry.read.query({ instanceId: asInstanceId(off), afterSeq: -1 })
    return (samples.at(-1) as Sample | undefined) ?? null
  })
  expect(typeof sample.values.tps).toBe('number')
  for (const name of ['sessions_shared', 'sessions_native', 'workers', 'shared_transactions'] as const)
    expect([name, sample.values[name] ?? null]).toEqual([name, null])
  await f.query(off, 'DROP EXTENSION shared_server CASCADE')
  expect(await read(off)).toBeNull()
  await waitUntil('it is unknown', async () => (await reported(off)) === null)
})

test('a port that the dispatcher could not listen on is refused before anything changes, with what to do', async () => {
  const change = (value: string | number) =>
    f.run({
      kind: 'change-settings',
      instanceId: id,
      changes: [{ name: 'polar_ss_port', value: String(value) }],
    })
  const own = (await f.observed(id))?.port as number
  const other = createServer()
  const [taken] = (await freePorts(1)) as [number]
  await new Promise<void>((resolve) => other.listen(taken, '127.0.0.1', resolve))
  try {
    expect((await change(taken)).fault).toMatchObject({
      code: 'setting.port_taken',
      message: `port ${taken} is in use on this host`,
      hint: expect.stringContaining('Choose another port'),
    })
  } finally {
    await new Promise((resolve) => other.close(resolve))
  }
  expect((await change(own)).fault).toMatchObject({
    code: 'setting.port_taken',
    message: `port ${own} is the instance’s own port`,
  })
  expect((await change(80)).fault).toMatchObject({
    code: 'setting.invalid_value',
    hint: 'Choose a port from 1024 to 65535, or 0 to close it.',
  })
  // its own dispatcher has it
  expect((await change(port)).state).toBe('succeeded')
})

test('a library that would pin every session is named before, and one that is called safe or known is not', async () => {
  const warned = async (...changes: [string, string][]) => {
    const { results } = await f.must({
      kind: 'try-settings',
      instanceId: asInstanceId(id),
      changes: changes.map(([name, value]) => ({ name, value })),
      acrossCluster: false,
    })
    expect(results.map((r) => r.fault)).toEqual(changes.map(() => null))
    return results.map((r) => r.warning ?? null)
  }
  const libraries = 'pg_stat_statements, tablefunc'
  expect(await warned(['shared_preload_libraries', libraries])).toMatchObject([
    {
      code: 'setting.pins_sessions',
      message: expect.stringContaining('because of library "tablefunc"'),
      hint: expect.stringContaining('polar_ss_safe_modules'),
    },
  ])
  const safe = ['polar_ss_safe_modules', 'tablefunc'] as [string, string]
  expect(await warned(['shared_preload_libraries', libraries], safe)).toEqual([null, null])
  const off = ['polar_enable_shared_server', 'off'] as [string, string]
  expect(await warned(['shared_preload_libraries', libraries], off)).toEqual([null, null])
})

test('a port that another process has leaves the instance running, and its dispatcher absent', async () => {
  const [taken] = (await freePorts(1)) as [number]
  // it was free when it was asked for
  const refused = await f.create({
    settings: { polar_ss_port: String(taken), polar_enable_shared_server: 'on' },
  })
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(taken, '127.0.0.1', resolve))
  try {
    await f.must({ kind: 'start-instance', instanceId: refused })
    await waitUntil('it is reported', async () => (await reported(refused))?.dispatcher === 'absent')
    expect(await read(refused)).toMatchObject({ port: taken, dispatcher: 'absent', counts: null })
    expect((await f.observed(refused))?.state).toBe('running')
  } finally {
    await new Promise((resolve) => other.close(resolve))
  }
  // the port is free again: the next try of the engine, a second later, finds it so
  const all = await f.read.report.read.query({ after: null })
  const again = all.instances.find((i) => i.sharedServer?.port === taken)?.instanceId as string
  await waitUntil('the dispatcher is there', async () => (await reported(again))?.dispatcher === 'running')
})
