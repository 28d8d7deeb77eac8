// An instance whose registration the agent has lost, and the copy of it too, is taken over as it is, or not at all.
import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { InstanceObserved, TaskResult } from '@floe/agent-contract'
import { testEngineUser, waitUntil } from '@floe/testkit'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFixture, killedAt } from './agent-fixture'
import { StandbyFixture } from './standby-fixture'

const asRoot = process.getuid?.() === 0

let f: AgentFixture
let s: StandbyFixture
beforeAll(async () => {
  f = await AgentFixture.start(16, undefined, { startCrashed: true })
  s = new StandbyFixture(f)
})
afterAll(() => f.remove())

const state = () => join(f.agent.home.home, 'agent')
const directoryOf = (id: string) => join(f.installation.instancesDirectory, id)
const registrationOf = (id: string) => join(state(), 'instances', `${id}.json`)
const registered = (id: string) => JSON.parse(readFileSync(registrationOf(id), 'utf8'))

/** The agent's registration of instances and its copies are gone, the rest of its state too unless `rest`. */
async function lose(ids: readonly string[], { rest = true, meanwhile = () => {} } = {}): Promise<void> {
  await f.agent.end()
  for (const id of ids) {
    rmSync(registrationOf(id))
    rmSync(join(directoryOf(id), 'registration.json'), { force: true })
    if (!rest)
      for (const part of ['settings', 'telemetry'])
        rmSync(join(state(), part), { recursive: true, force: true })
  }
  meanwhile()
  await f.agent.start()
}

/** What the console has recorded of an instance. */
const recordOf = (seen: InstanceObserved | undefined, more: object = {}) => ({
  kind: 'adopt-instance' as const,
  instanceId: seen?.instanceId as string,
  name: seen?.name as string,
  port: seen?.port as number,
  systemIdentifier: seen?.systemIdentifier as string,
  memberRole: 'primary' as const,
  alone: true,
  logins: seen?.logins ?? null,
  roles: [],
  ...more,
})
const adopt = (record: object) => f.must(record as never) as Promise<TaskResult<'adopt-instance'>>

function readClaim(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // another installation's, released in between
    return ''
  }
}

/** Uids that instances of this home have; other installations of the machine get theirs meanwhile. */
const claimsOfHome = () =>
  readdirSync('/var/lib/floe/users')
    .filter((name) => /^\d+\.json$/.test(name))
    .map((name) => readClaim(join('/var/lib/floe/users', name)))
    .filter((text) => text.includes(JSON.stringify(f.agent.home.home)))
    .sort()

/** Everything that a refusal must leave as it was. */
const traces = (id: string) => ({
  registered: readdirSync(join(state(), 'instances')).filter((name) => name.startsWith(id)),
  outer: readdirSync(directoryOf(id)).sort(),
  hba: readFileSync(join(f.dataDirectory(id), 'pg_hba.conf'), 'utf8'),
  included: existsSync(join(f.dataDirectory(id), 'floe_hba.conf')),
  claims: asRoot ? claimsOfHome() : [],
})

/** Rows written one by one until it is stopped, without a break in the connection. */
async function underLoad(id: string) {
  const client: pg.Client = await f.connect(id)
  await client.query('create table if not exists ledger (n int primary key)')
  let n = 0
  let stopped = false
  const done = (async () => {
    while (!stopped) await client.query('insert into ledger values ($1)', [++n])
  })()
  return {
    written: () => n,
    stop: async () => {
      stopped = true
      await done
      const { rows } = await client.query<{ n: number }>('select count(*)::int as n from ledger')
      await client.end()
      return { acknowledged: n, kept: rows[0]?.n }
    },
  }
}

test('lost under load, it is taken over without a restart: no row is lost, it is sampled and ruled again', async () => {
  const id = await f.createRunning({ name: 'under-load', settings: { work_mem: '7MB' } })
  const before = await f.waitForState(id, 'running')
  const load = await underLoad(id)
  await lose([id], { rest: false })
  expect(await f.observed(id)).toBeUndefined()
  expect((await f.run({ kind: 'stop-instance', instanceId: id, mode: 'fast' })).fault?.code).toBe(
    'instance.not_found',
  )
  const result = await adopt(recordOf(before))
  expect(result).toMatchObject({ postmasterPid: before.postmasterPid, port: before.port })
  // what nothing tells any more is said
  expect(result.lost.map((l) => l.what)).toEqual(['what its files of settings held before'])
  const after = await f.waitForState(id, 'running')
  expect(after).toMatchObject({
    postmasterPid: before.postmasterPid,
    port: before.port,
    startedAt: before.startedAt,
    user: before.user,
  })
  await waitUntil('it is sampled', async () => ((await f.observed(id))?.newestSeq ?? -1) >= 2)
  const so = load.written()
  await waitUntil('rows are written', () => load.written() > so)
  const { acknowledged, kept } = await load.stop()
  expect(kept).toBe(acknowledged)
  // a second order finds it done
  expect(await adopt(recordOf(before))).toMatchObject({ postmasterPid: before.postmasterPid, lost: [] })
  await f.must({
    kind: 'change-settings',
    instanceId: id,
    changes: [{ name: 'work_mem', value: '9MB' }],
  } as never)
  await f.must({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
  expect(await f.query(id, "select current_setting('work_mem') as mem")).toEqual([{ mem: '9MB' }])
  // the password of the agent's role is one that it knows: it comes in without its lines in pg_hba.conf
  const hba = join(f.dataDirectory(id), 'pg_hba.conf')
  writeFileSync(hba, readFileSync(hba, 'utf8').replace('include_if_exists floe_hba.conf\n', ''))
  await f.must({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
  await waitUntil('it is sampled', async () => (await f.observed(id))?.role === 'primary')
})

test('one that is stopped comes back stopped, and starts by an order', async () => {
  const id = await f.createRunning({ name: 'at-rest' })
  const before = await f.waitForState(id, 'running')
  await f.query(id, 'create table kept as select 42 as answer')
  await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
  await lose([id])
  expect(await adopt(recordOf(before))).toMatchObject({ postmasterPid: null })
  expect((await f.observed(id))?.state).toBe('stopped')
  await f.must({ kind: 'start-instance', instanceId: id })
  expect(await f.query(id, 'select answer from kept')).toEqual([{ answer: 42 }])
  expect((await f.waitForState(id, 'running')).port).toBe(before.port)
})

test('killed at any moment, the agent ends it right when it is back', { timeout: 180_000 }, async () => {
  const id = await f.createRunning({ name: 'killed' })
  const before = await f.waitForState(id, 'running')
  for (const afterMs of killedAt(5, 40, 120, 250)) {
    await lose([id])
    const key = await f.begin(recordOf(before) as never)
    await new Promise((resolve) => setTimeout(resolve, afterMs))
    await f.agent.end('SIGKILL')
    await f.agent.start()
    expect((await f.ended(key)).state).toBe('succeeded')
    expect((await f.waitForState(id, 'running')).postmasterPid).toBe(before.postmasterPid)
  }
})

describe('what does not fit is refused, and nothing is changed', () => {
  let id: string
  let before: InstanceObserved
  let other: string
  beforeAll(async () => {
    id = await f.createRunning({ name: 'refused' })
    other = await f.createRunning({ name: 'other' })
    before = await f.waitForState(id, 'running')
    await lose([id])
  })

  async function refuses(record: object, detail: RegExp, code = 'instance.not_adopted'): Promise<void> {
    const was = traces(id)
    const { fault } = await f.run(record as never)
    expect(fault).toMatchObject({ code, hint: expect.stringMatching(/./) })
    expect(fault?.detail).toMatch(detail)
    expect(traces(id)).toEqual(was)
    expect(await f.observed(id)).toBeUndefined()
  }
  const stopped = async () => {
    await adopt(recordOf(before))
    await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
    await lose([id])
  }

  test('another system identifier', () =>
    refuses(recordOf(before, { systemIdentifier: '7000000000000000001' }), /recorded is 7000000000000000001/))

  test('a port of another instance, and another port than the engine listens on', async () => {
    const { port } = (await f.observed(other)) as InstanceObserved
    await refuses(recordOf(before, { port }), /belongs to instance "other"/)
    const free = f.installation.instancePorts.to
    await refuses(recordOf(before, { port: free }), /was started with port/)
  })

  test('a directory that does not exist, of an id that nobody has', async () => {
    const { fault } = await f.run(recordOf(before, { instanceId: randomUUID() }) as never)
    expect(fault).toMatchObject({
      code: 'instance.not_adopted',
      detail: expect.stringContaining('does not exist'),
    })
  })

  test('a link in place of the data directory, or of what lies in it', async () => {
    await stopped()
    const data = f.dataDirectory(id)
    renameSync(data, `${data}.aside`)
    // the other's engine runs there, with the other's control file
    symlinkSync(f.dataDirectory(other), data)
    lchownSync(data, statSync(`${data}.aside`).uid, statSync(`${data}.aside`).gid)
    const { fault } = await f.run(recordOf(before) as never)
    expect(fault).toMatchObject({
      code: 'instance.not_adopted',
      detail: expect.stringContaining('is not a directory'),
    })
    unlinkSync(data)
    renameSync(`${data}.aside`, data)
    const control = join(data, 'global/pg_control')
    renameSync(control, `${control}.aside`)
    symlinkSync(`${control}.aside`, control)
    await refuses(recordOf(before), /pg_control" is not a file/)
    unlinkSync(control)
    renameSync(`${control}.aside`, control)
  })

  test('a port that something else listens on', async () => {
    const server = createServer().listen(before.port, '127.0.0.1')
    await waitUntil('it listens', () => server.listening)
    await refuses(recordOf(before), /Something that is not this instance listens on its port/)
    await new Promise((resolve) => server.close(resolve))
  })

  test('a directory that others can write to', async () => {
    const { mode } = statSync(directoryOf(id))
    chmodSync(directoryOf(id), 0o777)
    await refuses(recordOf(before), /Others than the agent can write/)
    chmodSync(directoryOf(id), mode & 0o777)
  })

  test.runIf(asRoot)('files of a user that it cannot have', async () => {
    const { uid, gid } = statSync(f.dataDirectory(id))
    const theirs = f.userOf(other)
    const owned = ['', 'PG_VERSION', 'global/pg_control'].map((name) => join(f.dataDirectory(id), name))
    const give = (to: { uid: number; gid: number }) => {
      for (const path of [...owned, join(directoryOf(id), 'log')]) chownSync(path, to.uid, to.gid)
    }
    const cases: [to: { uid: number; gid: number }, why: RegExp][] = [
      [theirs, /which instance "other" has/],
      [{ uid: 0, gid: 0 }, /cannot have: uid 0/],
      [{ uid: 1, gid: 1 }, /uid 1 is not that of the instance/],
      // one of the range that nobody has, while the instance has another
      [{ uid: uid + 1_000, gid: uid + 1_000 }, new RegExp(`has uid ${uid}`)],
    ]
    for (const [to, why] of cases) {
      give(to)
      await refuses(recordOf(before), why)
    }
    // only what lies in it
    give({ uid, gid })
    chownSync(owned[2] as string, theirs.uid, theirs.gid)
    await refuses(recordOf(before), /pg_control" belongs to uid/)
    give({ uid, gid })
  })

  test('a name that another instance has', async () => {
    const { fault } = await f.run(recordOf(before, { name: 'other' }) as never)
    expect(fault?.code).toBe('instance.name_taken')
  })

  test('what fits in the end is taken over', async () => {
    await adopt(recordOf(before))
    await f.must({ kind: 'start-instance', instanceId: id })
  })
})

test.runIf(asRoot)('a claim that is lost too is made again by the uid of the files', async () => {
  const id = await f.createRunning({ name: 'no-claim' })
  const before = await f.waitForState(id, 'running')
  const { uid } = f.userOf(id)
  const claim = `/var/lib/floe/users/${uid}.json`
  const { claimedAt: _at, ...claimed } = JSON.parse(readFileSync(claim, 'utf8'))
  await lose([id], { meanwhile: () => rmSync(claim) })
  await adopt(recordOf(before))
  expect(JSON.parse(readFileSync(claim, 'utf8'))).toMatchObject(claimed)
  expect(registered(id).user).toMatchObject({ uid, name: claimed.name })
})

describe('members of clusters', () => {
  let primary: string
  let standby: string
  let names: string[]
  beforeAll(async () => {
    primary = await s.primary('c-1')
    standby = (await s.standby(primary, 'c-2')).id
    names = [primary, standby]
  })
  const roles = () => [...s.roles.values()]
  const member = (seen: InstanceObserved | undefined, memberRole: string, more: object = {}) =>
    recordOf(seen, { memberRole, alone: false, roles: roles(), ...more })
  const seenBoth = async () =>
    Promise.all(names.map((id) => f.waitForState(id, 'running'))) as Promise<
      [InstanceObserved, InstanceObserved]
    >

  test('come back with what they replicate as, and go on streaming', async () => {
    const [p, q] = await seenBoth()
    const was = registered(standby)
    await lose(names, { rest: false })
    await adopt(member(p, 'primary'))
    const { lost } = await adopt(member(q, 'standby'))
    expect(lost.map((l) => l.what)).toEqual(['what its files of settings held before'])
    expect(registered(standby)).toMatchObject({
      replicationRole: was.replicationRole,
      replicationPassword: was.replicationPassword,
    })
    const [after, follower] = await seenBoth()
    expect([after.postmasterPid, follower.postmasterPid]).toEqual([p.postmasterPid, q.postmasterPid])
    expect(follower.role).toBe('standby')
    await f.query(primary, 'create table streamed as select 1 as one')
    await s.caughtUp(primary, standby)
    await f.must({ kind: 'restart-instance', instanceId: standby, mode: 'fast' })
    await f.query(primary, 'insert into streamed values (2)')
    await s.caughtUp(primary, standby)
  })

  test('say that a password is lost, where the file that held it is', async () => {
    const [, q] = await seenBoth()
    await lose([standby], {
      meanwhile: () => {
        const file = join(directoryOf(standby), 'replication.pgpass')
        rmSync(file)
        // a directory in its place is no file that a password stands in
        mkdirSync(file)
      },
    })
    const { lost } = await adopt(member(q, 'standby'))
    expect(lost).toEqual([
      expect.objectContaining({
        what: 'the password that it replicates with',
        hint: expect.stringContaining('rejoin'),
      }),
    ])
    rmSync(join(directoryOf(standby), 'replication.pgpass'), { recursive: true })
  })

  test('a primary that was held back stays held back: killed, it does not start by itself', async () => {
    const [p] = await seenBoth()
    const told = {
      instanceId: primary,
      timeline: 1,
      heldBack: { isolatedAfterMs: 3_600_000, isolatedPrimary: 'read-only' },
    }
    await f.must({ kind: 'keep-primary', instanceId: primary, primary: told } as never)
    await lose([primary])
    await adopt(member(p, 'primary', { primary: told }))
    expect((await f.observed(primary))?.primaryKnown).toMatchObject(told)
    process.kill(p.postmasterPid as number, 'SIGKILL')
    await f.waitForState(primary, 'crashed')
    expect((await f.run({ kind: 'start-instance', instanceId: primary })).fault?.code).toBe(
      'instance.held_back',
    )
    // another one, told nothing, is started by itself meanwhile
    const free = await f.createRunning()
    const pid = (await f.observed(free))?.postmasterPid as number
    process.kill(pid, 'SIGKILL')
    await waitUntil('the other one is back', async () => {
      const seen = await f.observed(free)
      return seen?.state === 'running' && seen.postmasterPid !== pid
    })
    expect((await f.observed(primary))?.state).toBe('crashed')
    await f.must({
      kind: 'start-instance',
      instanceId: primary,
      primary: { instanceId: primary, timeline: 1, heldBack: null },
    } as never)
  })

  test('one that is fenced stays fenced; and one that is recorded so is, though its mark is gone', async () => {
    const [, q] = await seenBoth()
    await f.must({ kind: 'fence-instance', instanceId: standby, reason: 'another took over' } as never)
    await lose([standby])
    await adopt(member(q, 'fenced'))
    expect((await f.observed(standby))?.fenced?.reason).toBe('another took over')
    expect((await f.run({ kind: 'start-instance', instanceId: standby })).fault?.code).toBe('instance.fenced')
    await lose([standby], { meanwhile: () => rmSync(join(directoryOf(standby), 'fenced.json')) })
    await adopt(member(q, 'fenced'))
    expect((await f.observed(standby))?.fenced).toBeTruthy()
  })

  test('a standby whose files are those of a primary by now comes back fenced', async () => {
    const [p] = await Promise.all([f.waitForState(primary, 'running')])
    await f.must({ kind: 'stop-instance', instanceId: primary, mode: 'fast' })
    await lose([primary])
    await adopt(member(p, 'standby'))
    expect((await f.observed(primary))?.fenced?.reason).toContain('would start as a primary')
    expect((await f.run({ kind: 'start-instance', instanceId: primary })).fault?.code).toBe('instance.fenced')
  })
})

test.runIf(asRoot)('the user that engines of before shared', async () => {
  const id = await f.createRunning({ name: 'shared' })
  const before = await f.waitForState(id, 'running')
  await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
  const { uid = 0, gid = 0 } = testEngineUser()
  await lose([id], {
    meanwhile: () => {
      const all = readdirSync(directoryOf(id), { recursive: true, withFileTypes: true })
      for (const entry of all) lchownSync(join(entry.parentPath, entry.name), uid, gid)
    },
  })
  await adopt(recordOf(before))
  expect(registered(id).user).toBeUndefined()
  await f.must({ kind: 'start-instance', instanceId: id })
})

describe('an instance that only the console did not know', () => {
  const reported = (seen: InstanceObserved | undefined, more: object = {}) =>
    recordOf(seen, { formerName: seen?.name, logins: null, ...more })

  test('goes on under the name that the console gives it', async () => {
    const id = await f.createRunning({ name: 'unknown' })
    const before = await f.waitForState(id, 'running')
    expect(before.standbySignal).toBe(false)
    for (const _ of ['first', 'again'])
      expect(await adopt(reported(before, { name: 'known-now' }))).toMatchObject({
        postmasterPid: before.postmasterPid,
        lost: [],
      })
    expect(await f.observed(id)).toMatchObject({ name: 'known-now', postmasterPid: before.postmasterPid })
    expect(registered(id)).toMatchObject({ name: 'known-now', port: before.port })
    await f.must({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
    expect(await f.query(id, "select current_setting('cluster_name') as name")).toEqual([
      { name: 'known-now' },
    ])
  })

  test('is refused where it is another one by now, a standby, or fenced, and keeps its name', async () => {
    const primary = await s.primary('u-1')
    const standby = (await s.standby(primary, 'u-2')).id
    const [p, q] = await Promise.all([primary, standby].map((id) => f.waitForState(id, 'running')))
    const refusal = async (record: object) => (await f.run(record as never)).fault?.code
    expect(await refusal(reported(p, { name: 'x', systemIdentifier: '1' }))).toBe('instance.not_adopted')
    expect(await refusal(reported(p, { name: 'x', formerName: 'y' }))).toBe('instance.not_adopted')
    expect(await refusal(reported(p, { name: 'u-2' }))).toBe('instance.name_taken')
    expect(await refusal(reported(p, { instanceId: randomUUID() }))).toBe('instance.not_found')
    expect(q?.standbySignal).toBe(true)
    expect(await refusal(reported(q, { name: 'x' }))).toBe('instance.is_standby')
    // told of another primary, it has a cluster that is not its own
    await f.must({
      kind: 'keep-primary',
      instanceId: primary,
      primary: { instanceId: standby, timeline: 2 },
    } as never)
    expect(await refusal(reported(p, { name: 'x' }))).toBe('instance.is_standby')
    await f.must({ kind: 'fence-instance', instanceId: primary, reason: 'another took over' } as never)
    expect(await refusal(reported(p, { name: 'x' }))).toBe('instance.fenced')
    expect([(await f.observed(primary))?.name, (await f.observed(standby))?.name]).toEqual(['u-1', 'u-2'])
  })
})
