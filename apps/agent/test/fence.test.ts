import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isRunning, readProcess } from '@floe/host/process'
import { listPids, processDirectory, runsAs } from '@floe/host/process-facts'
import { waitUntil } from '@floe/testkit'
import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'

let f: AgentFixture
let id: string
beforeAll(async () => {
  f = await AgentFixture.start(24, undefined, { startCrashed: true })
})
afterAll(() => f.remove())
beforeEach(async () => {
  id = await f.createRunning()
  await f.query(id, 'create table ledger (id bigint)')
})

const asRoot = process.getuid?.() === 0
/** All processes of the instance, by other means than the agent's: its user has no others. Without root those that work in it. */
const processesOf = (uid: number, directory: string) =>
  listPids().filter((pid) =>
    asRoot ? runsAs(pid, uid) : runsAs(pid, uid) && processDirectory(pid)?.startsWith(directory),
  )

/** A client that commits row after row and notes when each was acknowledged. */
function committing(client: pg.Client) {
  const acknowledged: number[] = []
  const ended = (async () => {
    for (let row = 0; ; row++) {
      await client.query('insert into ledger values ($1)', [row])
      acknowledged.push(performance.now())
    }
  })().catch(() => {})
  return { acknowledged, ended }
}

async function fenced(boundMs = 60_000): Promise<{ at: number; ms: number; uid: number }> {
  const { uid } = f.userOf(id)
  const begun = performance.now()
  // a start of the agent's own after a crash makes way for it, and has to be asked again
  const key = await waitUntil('it is begun', () =>
    f.begin({ kind: 'fence-instance', instanceId: id, reason: 'another one took over' }),
  )
  const status = await f.ended(key, boundMs)
  expect(status).toMatchObject({ state: 'succeeded', fault: null })
  return { at: performance.now(), ms: performance.now() - begun, uid }
}

async function nothingIsLeft(uid: number): Promise<void> {
  expect(processesOf(uid, dirname(f.dataDirectory(id)))).toEqual([])
  expect(await f.waitForState(id, 'stopped')).toMatchObject({ postmasterPid: null, processFault: null })
}

const astray = (code: string) =>
  waitUntil(`the report says ${code}`, async () => {
    const seen = await f.observed(id)
    expect(seen?.state).not.toBe('crashed')
    return seen?.processFault?.code === code ? seen : null
  })

/** Nobody starts it a second time, neither by order nor by itself. */
async function isNotStarted(code: string): Promise<void> {
  expect((await f.run({ kind: 'start-instance', instanceId: id })).fault?.code).toBe(code)
}

test('its postmaster.pid is removed: it runs, says so, is not started again, and a fence ends it', async () => {
  const pid = (await f.observed(id))?.postmasterPid as number
  const writer = committing(await f.connect(id))
  rmSync(join(f.dataDirectory(id), 'postmaster.pid'))
  expect(await astray('instance.no_pid_file')).toMatchObject({
    state: 'running',
    postmasterPid: pid,
    because: expect.stringContaining('runs without its postmaster.pid'),
  })
  await isNotStarted('instance.no_pid_file')
  await waitUntil('rows are acknowledged', () => writer.acknowledged.length > 0)
  const { at, uid } = await fenced()
  await writer.ended
  expect(writer.acknowledged.filter((t) => t > at)).toEqual([])
  await nothingIsLeft(uid)
})

test('a stop ends it, too, and it starts again with every row', async () => {
  rmSync(join(f.dataDirectory(id), 'postmaster.pid'))
  await f.query(id, 'insert into ledger values (42)')
  await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
  await f.must({ kind: 'start-instance', instanceId: id })
  expect(await f.query(id, 'select id::int from ledger')).toEqual([{ id: 42 }])
})

/** Inserts for some seconds; whenever it is stopped it may hold a lock of the server's memory. */
const INSERTING = 'insert into ledger select generate_series(1, 3000000)'
/** Has inserted, and holds none. */
const WAITING = 'insert into ledger values (7); select pg_sleep(600)'

/** Leaves one backend, in the middle of a statement, without its postmaster. */
async function orphan(statement: string): Promise<{ backend: number; outcome: Promise<string> }> {
  const { postmasterPid } = (await f.observed(id)) as { postmasterPid: number }
  const client = await f.connect(id)
  const [row] = (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows
  const backend = row?.pid as number
  const outcome = client.query(statement).then(
    () => 'acknowledged',
    () => 'broken',
  )
  await waitUntil('it works', async () => {
    const [seen] = await f.query<{ state: string; event: string | null }>(
      id,
      `select state, wait_event as event from pg_stat_activity where pid = ${backend}`,
    )
    return seen?.state === 'active' && (statement === INSERTING || seen.event === 'PgSleep')
  })
  process.kill(backend, 'SIGSTOP')
  process.kill(postmasterPid, 'SIGKILL')
  await waitUntil('its postmaster has ended', () => !isRunning(readProcess(postmasterPid)))
  return { backend, outcome }
}

test('a backend outlives its postmaster: not crashed, not started, and after a fence it acknowledges nothing', async () => {
  const { backend, outcome } = await orphan(INSERTING)
  expect(await astray('instance.no_postmaster')).toMatchObject({
    state: 'stopping',
    postmasterPid: null,
    processFault: { detail: expect.stringContaining(`${backend} (stopped by a signal)`) },
  })
  await isNotStarted('instance.no_postmaster')
  const { uid, ms } = await fenced()
  expect(ms).toBeLessThan(10_000)
  // had it been left, it would go on now and tell its client that the rows are kept
  if (isRunning(readProcess(backend))) process.kill(backend, 'SIGCONT')
  expect(await outcome).toBe('broken')
  await nothingIsLeft(uid)
})

test('once such a backend has ended by itself the instance has crashed and comes back', async () => {
  // what waits for a lock of one that was killed waits on without a postmaster, and is not crashed
  const { backend, outcome } = await orphan(WAITING)
  await astray('instance.no_postmaster')
  process.kill(backend, 'SIGKILL')
  expect(await outcome).toBe('broken')
  await f.waitForState(id, 'running')
  expect((await f.observed(id))?.processFault).toBeNull()
  expect(await f.query(id, 'select count(*)::int from ledger')).toEqual([{ count: 0 }])
})

test.each([
  ['fence-instance', { reason: 'another one took over' }],
  ['stop-instance', { mode: 'immediate' }],
] as const)('a postmaster that stands still does not hold up %s', async (kind, more) => {
  const pid = (await f.observed(id))?.postmasterPid as number
  const { uid } = f.userOf(id)
  const writer = committing(await f.connect(id))
  process.kill(pid, 'SIGSTOP')
  const begun = performance.now()
  const status = await f.run({ kind, instanceId: id, ...more } as never)
  const at = performance.now()
  expect(status).toMatchObject({ state: 'succeeded', fault: null })
  expect(at - begun).toBeLessThan(20_000)
  await writer.ended
  expect(writer.acknowledged.filter((t) => t > at)).toEqual([])
  await nothingIsLeft(uid)
})

describe('its data directory is taken away and a copy put in its place', () => {
  test.each([
    ['inside its own directory', () => join(dirname(f.dataDirectory(id)), 'before')],
    ['elsewhere', () => join(f.installation.instancesDirectory, `before-${id}`)],
  ])('it lies %s now: it runs, says so, is not started twice, and a fence ends it', async (_, where) => {
    const directory = f.dataDirectory(id)
    const pid = (await f.observed(id))?.postmasterPid as number
    const writer = committing(await f.connect(id))
    renameSync(directory, where())
    execFileSync('cp', ['-a', where(), directory])
    expect(await astray('instance.other_directory')).toMatchObject({
      state: 'running',
      postmasterPid: pid,
      processFault: { detail: expect.stringContaining(`"${where()}"`) },
    })
    await isNotStarted('instance.other_directory')
    const { at, uid } = await fenced()
    await writer.ended
    expect(writer.acknowledged.filter((t) => t > at)).toEqual([])
    await nothingIsLeft(uid)
  })

  test('nor does it help to have no directory at all, a backend without a postmaster, and an agent that was not there', async () => {
    const away = join(f.installation.instancesDirectory, `away-${id}`)
    const { uid } = f.userOf(id)
    const { outcome, backend } = await orphan(INSERTING)
    await f.agent.end('SIGKILL')
    renameSync(f.dataDirectory(id), away)
    await f.agent.start()
    await astray('instance.no_postmaster')
    await f.must({ kind: 'fence-instance', instanceId: id, reason: 'another one took over' })
    if (isRunning(readProcess(backend))) process.kill(backend, 'SIGCONT')
    expect(await outcome).toBe('broken')
    await nothingIsLeft(uid)
  })
})

describe.runIf(asRoot)('processes that are no engine’s', () => {
  const started = (words: string) =>
    f.query(id, `copy (select 1) to program $x$ cat >/dev/null; nohup sh -c '${words}' >/dev/null 2>&1 & $x$`)
  const stray = (uid: number) =>
    waitUntil('it runs', () =>
      listPids().find((p) => runsAs(p, uid) && readFileSync(`/proc/${p}/cmdline`, 'utf8').includes('sleep')),
    )

  test('a program of its superuser keeps no crash from being one, and ends with a fence, wherever it works', async () => {
    const { uid } = f.userOf(id)
    await started('cd /; setsid sleep 1000')
    await stray(uid)
    process.kill((await f.observed(id))?.postmasterPid as number, 'SIGKILL')
    await f.waitForState(id, 'crashed')
    await f.waitForState(id, 'running')
    await fenced()
    await nothingIsLeft(uid)
  })

  test('one that forks all the time is ended, too', async () => {
    const { uid } = f.userOf(id)
    await started('f() { (f) & sleep 0.01; }; while :; do (sleep 0.05) & sleep 0.01; done; sleep 1')
    await stray(uid)
    await fenced()
    await nothingIsLeft(uid)
  })

  test('root’s own shell in the data directory is nobody’s to kill, though postmaster.pid names it', async () => {
    const shell = spawn('/bin/sh', ['-c', 'read x'], {
      cwd: f.dataDirectory(id),
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    await once(shell, 'spawn')
    await f.query(
      id,
      `copy (select '${shell.pid}') to program 'sed -i "1s/.*/${shell.pid}/" ${join(f.dataDirectory(id), 'postmaster.pid')}'`,
    )
    await astray('instance.no_pid_file')
    const { uid } = await fenced()
    await nothingIsLeft(uid)
    expect(isRunning(readProcess(shell.pid as number))).toBe(true)
    const gone = once(shell, 'exit')
    shell.kill('SIGKILL')
    await gone
  })
})

describe('an order to fence is about a timeline', () => {
  const fence = (timeline: number | null) =>
    f.run({ kind: 'fence-instance', instanceId: id, reason: 'another one took over', timeline })
  /** Becomes a primary on the next timeline, as a standby does that is promoted. */
  async function promoted(): Promise<void> {
    await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
    writeFileSync(join(f.dataDirectory(id), 'standby.signal'), '')
    await f.must({ kind: 'start-instance', instanceId: id })
    await f.query(id, 'select pg_promote()')
    await waitUntil('it is on timeline 2', async () => (await f.observed(id))?.timeline === 2)
  }

  test.each([
    ['it runs', async () => {}],
    [
      'it stands still, and its last checkpoint is of before',
      async () => process.kill((await f.observed(id))?.postmasterPid as number, 'SIGSTOP'),
    ],
    [
      'it was shut down',
      async () => {
        await f.must({ kind: 'stop-instance', instanceId: id, mode: 'immediate' })
      },
    ],
  ])('who was promoted since is left alone and says why: %s', async (_, bringAbout) => {
    await promoted()
    await bringAbout()
    const pid = (await f.observed(id))?.postmasterPid
    const refused = await fence(1)
    expect(refused).toMatchObject({
      state: 'failed',
      fault: { code: 'fence.newer_timeline', detail: expect.stringContaining('is on timeline 2') },
    })
    const seen = await f.observed(id)
    expect(seen).toMatchObject({ postmasterPid: pid ?? null, fenced: null })
    expect((await fence(2)).state).toBe('succeeded')
  })

  test('who is on that timeline is ended, and so is whoever is meant whichever it is on', async () => {
    expect((await fence(1)).state).toBe('succeeded')
    id = await f.createRunning()
    expect((await fence(null)).state).toBe('succeeded')
  })
})
