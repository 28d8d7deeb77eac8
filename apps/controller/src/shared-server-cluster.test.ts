import { showInstance } from '@floe/db'
import { type ClusterMember, judgeCandidates } from '@floe/domain'
import { freePorts, waitUntil } from '@floe/testkit'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type LoopbackHostFixture, loopbackHostFixture } from './testing/hosts-fixture'
import { WriteLedger } from './testing/write-ledger'

// Members of a cluster whose sessions share backends: what a switchover and a failover by command leave of the sessions, and
// whether the new primary's pool serves as soon as the new primary does.

let fixture: LoopbackHostFixture
let one: string
/** The shared port of each member, by its name. */
const shared = new Map<string, number>()
const sessions: SharedSession[] = []

/** Four work or wait inside a transaction while the primary goes. */
const BACKENDS = 6

beforeAll(async () => {
  fixture = await loopbackHostFixture()
  await fixture.start()
  for (const [i, port] of (await freePorts(2)).entries()) shared.set(['one', 'two'][i] as string, port)
  one = await fixture.createInstance('one', fixture.host(1), {
    polar_ss_port: String(shared.get('one')),
    polar_enable_shared_server: 'on',
    polar_ss_backend_max_count: String(BACKENDS),
  })
  await fixture.ask(await fixture.primaryOf(one), 'create table ledger (n int primary key)')
  await fixture.ask(
    await fixture.primaryOf(one),
    'create table row_of_all (n int); insert into row_of_all values (1)',
  )
  const two = await fixture.createStandby(one, 'two')
  await fixture.carryOut('change-settings', {
    instanceId: two,
    changes: [{ name: 'polar_ss_port', value: String(shared.get('two')) }],
  })
  await fixture.carryOut('restart-instance', { instanceId: two })
  await fixture.carryOut('change-synchronous', {
    clusterId: (await fixture.clusterOf(one)).clusterId,
    instanceId: one,
    synchronous: { method: 'any', count: 1, instanceIds: [two] },
    commitMode: 'on',
  })
}, 180_000)
afterEach(() => Promise.all(sessions.splice(0).map((s) => s.end())))
afterAll(() => fixture?.remove())

const target = () =>
  ({ user: 'postgres', database: 'postgres', password: fixture.password, ssl: false }) as const
const addressOf = (m: ClusterMember) => ({ host: '127.0.0.1', port: shared.get(m.name) as number })

/** A client at the shared port of a member; `ended` tells with which SQLSTATE, or which error of the socket, it was let go. */
class SharedSession {
  readonly client: pg.Client
  readonly ended: Promise<string>
  #code: string | undefined
  readonly #note = (error: Error & { code?: string }) => {
    this.#code ??= error.code ?? error.message
  }

  constructor(m: ClusterMember) {
    this.client = new pg.Client({ ...target(), ...addressOf(m), connectionTimeoutMillis: 10_000 })
    this.client.on('error', this.#note)
    this.ended = new Promise((resolve) => {
      this.client.on('end', () => resolve(this.#code ?? 'end of the connection'))
    })
  }

  /** Asks, and leaves the answer to come. The end of a session is told to its statement, where it has one. */
  ask(statement: string): this {
    this.client.query(statement).catch(this.#note)
    return this
  }

  async end(): Promise<void> {
    await this.client.end().catch(() => {})
  }
}

async function sessionAt(m: ClusterMember): Promise<SharedSession> {
  const session = new SharedSession(m)
  sessions.push(session)
  await session.client.connect()
  return session
}

/** In which mode a session is that logs in there now, in the engine's words. */
async function modeAt(m: ClusterMember): Promise<string | undefined> {
  const { client } = await sessionAt(m)
  const { rows } = await client.query<{ mode: string }>(
    'select mode from polar_stat_session where worker_pid = pg_backend_pid()',
  )
  return rows[0]?.mode
}

/** Sessions in every state in which one can be when its primary goes; all of them share backends. */
async function sessionsInEveryState(m: ClusterMember) {
  const parked = await Promise.all(Array.from({ length: 12 }, () => sessionAt(m)))
  for (const session of parked) await session.client.query('select 1')
  const inTransaction = await sessionAt(m)
  await inTransaction.client.query('begin')
  await inTransaction.client.query('update row_of_all set n = n + 1')
  const behindLock = (await sessionAt(m)).ask('update row_of_all set n = n + 1')
  const working = [await sessionAt(m), await sessionAt(m)]
  for (const session of working) session.ask('select pg_sleep(600)')
  const all = [...parked, inTransaction, behindLock, ...working]
  await waitUntil('all share backends', async () => {
    const [seen] = await fixture.ask<{ sessions: number; bound: number }>(
      m,
      `select (select count(*)::int from polar_stat_session where mode = 'shared') as sessions, n_bound as bound
       from polar_stat_dispatcher`,
    )
    return seen?.sessions === all.length && seen.bound >= working.length + 2
  })
  return all
}

/** A writer at the ordinary ports and one at the shared ports. */
async function writers() {
  await fixture.ask(await fixture.primaryOf(one), 'truncate ledger')
  const { members } = await fixture.clusterOf(one)
  const unshared = new WriteLedger(target(), () => members.flatMap((m) => m.connection ?? []), 10)
  const through = new WriteLedger(target(), () => members.map(addressOf), 10, 1_000_000)
  return { unshared, through, stop: () => Promise.all([unshared.stop(), through.stop()]) }
}

/** How each session ended, counted by its word. */
async function ends(of: SharedSession[]): Promise<Record<string, number>> {
  const codes = await waitUntil('every session was told, or cut off', async () => {
    const all = await Promise.race([
      Promise.all(of.map((s) => s.ended)),
      new Promise<null>((resolve) => setTimeout(resolve, 100, null)),
    ])
    return all
  })
  const counted: Record<string, number> = {}
  for (const code of codes) counted[code] = (counted[code] ?? 0) + 1
  return counted
}

test('a switchover ends each shared session with 57P01, and the new primary serves at its shared port', async () => {
  const former = await fixture.primaryOf(one)
  const open = await sessionsInEveryState(former)
  const { unshared, through, stop } = await writers()
  try {
    for (const writer of [unshared, through]) {
      expect(await writer.writesAgain(10_000)).toBe(true)
      writer.takeLongestGap()
    }
    const two = await fixture.memberOf(one, 'two')
    await fixture.carryOut('switchover-cluster', {
      clusterId: (await fixture.clusterOf(one)).clusterId,
      instanceId: two.instanceId,
    })
    expect(await ends(open)).toEqual({ '57P01': open.length })
    for (const writer of [unshared, through]) expect(await writer.writesAgain(10_000)).toBe(true)
    console.log(
      `gap of the switchover: ${Math.round(unshared.takeLongestGap())} ms, through the shared port ${Math.round(through.takeLongestGap())} ms`,
    )
  } finally {
    await stop()
  }
  const now = await fixture.primaryOf(one)
  expect(now.name).toBe('two')
  expect(await fixture.lost(one, [...unshared.acknowledged, ...through.acknowledged])).toEqual([])
  // what was not committed is nowhere, and nobody holds a lock from before
  expect(await fixture.ask(now, 'update row_of_all set n = n + 1 returning n')).toEqual([{ n: 2 }])
  expect(await modeAt(now)).toBe('shared')
}, 120_000)

test('a failover by command after a kill: no shared session hangs, and the new primary serves at its shared port', async () => {
  const former = await fixture.primaryOf(one)
  const open = await sessionsInEveryState(former)
  const { unshared, through, stop } = await writers()
  try {
    for (const writer of [unshared, through]) expect(await writer.writesAgain(10_000)).toBe(true)
    process.kill((await showInstance(fixture.db.pool, former.instanceId))?.postmasterPid as number, 'SIGKILL')
    // each ends; a postmaster that is killed leaves nobody who could tell all of them why
    console.log(
      `sessions of a primary whose postmaster was killed ended with ${JSON.stringify(await ends(open))}`,
    )
    await waitUntil('the crash is seen', async () => (await fixture.primaryOf(one)).state === 'crashed')
    const seen = await waitUntil('the standby can take over', async () => {
      const cluster = await fixture.clusterOf(one)
      return judgeCandidates(cluster, 'failover')[0]?.blockers.length === 0 ? cluster : null
    })
    await fixture.carryOut('failover-cluster', {
      clusterId: seen.clusterId,
      instanceId: judgeCandidates(seen, 'failover')[0]?.instanceId,
    })
    for (const writer of [unshared, through]) expect(await writer.writesAgain(10_000)).toBe(true)
  } finally {
    await stop()
  }
  const now = await fixture.primaryOf(one)
  expect(now.instanceId).not.toBe(former.instanceId)
  expect(await fixture.lost(one, [...unshared.acknowledged, ...through.acknowledged])).toEqual([])
  await fixture.carryOut('rejoin-standby', { instanceId: former.instanceId })
  expect(await modeAt(now)).toBe('shared')
}, 120_000)
