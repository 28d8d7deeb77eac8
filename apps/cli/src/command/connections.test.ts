import type { SharedServer } from '@floe/domain'
import { expect, test } from 'vitest'
import { formatConnections } from './connections'

const shop = {
  name: 'shop',
  connection: { host: '127.0.0.1', port: 5_500, user: 'postgres', database: 'postgres' },
  remoteAccess: null,
}
const off: SharedServer = {
  port: null,
  enabled: false,
  dispatcher: null,
  tls: true,
  workersMax: 20,
  sessionsMax: 10_000,
  memoryMaxBytes: 128 * 1_048_576,
  counts: null,
  pinned: [],
  pools: [],
}
const on: SharedServer = {
  ...off,
  port: 5_999,
  enabled: true,
  dispatcher: 'running',
  counts: {
    since: 0,
    shared: 40,
    dedicated: 2,
    native: 3,
    login: 1,
    bound: 5,
    parked: 30,
    waiting: 6,
    workers: 8,
    freeWorkers: 0,
    pools: 1,
    transactions: 1_234,
    timeouts: 0,
    waitP50Ms: 0.128,
    waitP99Ms: 16.384,
    memoryBytes: 2_048,
  },
  pinned: [{ reason: 'temporary objects', sessions: 2 }],
  pools: [
    {
      database: 'shop',
      user: 'app',
      sessions: 42,
      workers: 8,
      freeWorkers: 0,
      waiting: 6,
      dedicated: 2,
      transactions: 1_234,
      binds: 900,
      meanWaitMs: 3.2,
    },
  ],
}

test('what is off or unknown is said, with no number that could be taken for a measurement', () => {
  expect(formatConnections(shop, null)).toMatch(/^Unknown: .*shared_server/)
  const text = formatConnections(shop, off)
  expect(text).toMatch(/^Shared Server is off/)
  expect(text).toContain('./floe setting set shop polar_ss_port=PORT polar_enable_shared_server=on')
  expect(text).not.toMatch(/sessions {2}|workers {2}|transactions {2}/)
})

test('a dispatcher that is gone leaves sessions unknown', () => {
  const text = formatConnections(shop, { ...on, dispatcher: 'absent', counts: null, pinned: [], pools: [] })
  expect(text).toContain('Dispatcher down')
  expect(text).toContain('the engine has none; sessions are unknown')
  expect(text).not.toContain('transactions')
})

test('of several dispatchers their number, what is wrong with one, and whose a pool is', () => {
  const works = { state: 'running', active: true, relayActive: null } as const
  const dispatchers = [
    { ...works, number: 1 },
    { ...works, number: 2 },
  ]
  const pools = on.pools.map((pool) => ({ ...pool, dispatcher: 2 }))
  const text = formatConnections(shop, { ...on, dispatchers, pools })
  expect(text).toMatch(/^dispatchers {3}2$/m)
  expect(text).toMatch(/shop +app +2 +42 /)
  const [first, second] = dispatchers as [(typeof dispatchers)[number], (typeof dispatchers)[number]]
  const stuck = [first, { ...second, active: false }]
  expect(formatConnections(shop, { ...on, dispatchers: stuck })).toMatch(
    /^dispatchers {3}2; The dispatcher 2 of 2 runs and does nothing$/m,
  )
  const unknown = [first, { ...second, active: null }]
  expect(formatConnections(shop, { ...on, dispatchers: unknown })).toMatch(/1 of them do.* not known yet$/m)
  expect(formatConnections(shop, { ...on, dispatchers: [first] })).not.toContain('dispatchers')
})

test('sessions by mode, workers, waits, reasons with advice, and pools', () => {
  const text = formatConnections(shop, on)
  expect(text).toContain('40 shared, 2 dedicated, of at most 10000; 3 native')
  expect(text).toContain('8 of at most 20, 0 free, in 1 pool\n')
  expect(text).toContain('p50 0.13 ms, p99 16 ms')
  expect(text).toMatch(/temporary objects +2 +Drop temporary tables/)
  expect(text).toMatch(/shop +app +42 +8 +0 +6 +2 +3\.2 ms +1234/)
  expect(text).toContain("psql 'postgresql://postgres@127.0.0.1:5999/postgres?sslmode=disable'")
})
