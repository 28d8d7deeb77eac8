import { randomUUID } from 'node:crypto'
import { appendFileSync, existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agentFault } from '@floe/agent-contract/client'
import { readProcess } from '@floe/host/process'
import { testEngineUser, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFixture, asInstanceId, asInstanceName } from './agent-fixture'

let f: AgentFixture
beforeAll(async () => {
  f = await AgentFixture.start(16)
})
afterAll(() => f.remove())

const faultOf = async (call: Promise<unknown>) =>
  call.then(
    () => 'no fault',
    (error) => agentFault(error).code,
  )

describe('a created and started instance', () => {
  let id: string
  beforeAll(async () => {
    id = await f.createRunning({ name: 'first', settings: { work_mem: '7MB' } })
  })

  test('lets its owner in with the password behind the verifier, and nobody without it', async () => {
    expect(await f.query(id, 'select current_user as who')).toEqual([{ who: 'postgres' }])
    await expect(f.connect(id, 'wrong')).rejects.toThrow('password authentication failed')
  })

  test('has data checksums, the wished settings, and reads its own report', async () => {
    expect(
      await f.query(
        id,
        "select current_setting('data_checksums') as checksums, current_setting('work_mem') as mem",
      ),
    ).toEqual([{ checksums: 'on', mem: '7MB' }])
    const seen = await f.observed(id)
    expect(seen).toMatchObject({
      state: 'running',
      role: 'primary',
      dataChecksums: true,
      timeline: 1,
      name: 'first',
    })
    expect(seen?.engineVersion).toMatch(/^18/)
  })

  test('keeps to itself: its files are the engine’s user’s alone, and it cannot swap their directories for links', () => {
    const directory = `${f.installation.instancesDirectory}/${id}`
    const entries = readdirSync(directory).filter(
      (name) => !['start.log', 'registration.json'].includes(name),
    )
    // a trial of settings has a data directory of its own
    expect(['log', 'pgdata', 'trial']).toEqual(expect.arrayContaining(entries))
    for (const own of entries) {
      const { mode, uid } = statSync(`${directory}/${own}`)
      expect(mode & 0o777).toBe(0o700)
      // nobody else's: neither the agent's, nor that of other instances
      if (process.getuid?.() === 0) expect([0, testEngineUser().uid]).not.toContain(uid)
    }
    const { mode, uid } = statSync(directory)
    expect(mode & 0o777).toBe(testEngineUser().uid === null ? 0o700 : 0o711)
    expect(uid).toBe(process.getuid?.())
  })

  test('does not run as root', async () => {
    const pid = (await f.observed(id))?.postmasterPid as number
    expect(statSync(`/proc/${pid}`).uid).not.toBe(0)
  })

  test('stops, starts and restarts, and every answer comes after the fact', async () => {
    await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
    expect(await f.observed(id)).toMatchObject({ state: 'stopped', postmasterPid: null })
    await expect(f.connect(id)).rejects.toThrow()
    const { postmasterPid } = await f.must({ kind: 'start-instance', instanceId: id })
    expect((await f.observed(id))?.state).toBe('running')
    const again = await f.must({ kind: 'restart-instance', instanceId: id, mode: 'immediate' })
    expect(again.postmasterPid).not.toBe(postmasterPid)
    expect(await f.query(id, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('a reload takes over what a person wrote into postgresql.conf, and names what waits for a restart', async () => {
    appendFileSync(`${f.dataDirectory(id)}/postgresql.conf`, "work_mem = '7MB'\nmax_connections = 77\n")
    expect(await f.must({ kind: 'reload-instance', instanceId: id })).toEqual({
      pendingRestart: ['max_connections'],
    })
    expect(await f.query(id, 'SHOW work_mem')).toEqual([{ work_mem: '7MB' }])
    await f.must({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
    expect(await f.must({ kind: 'reload-instance', instanceId: id })).toEqual({ pendingRestart: [] })
    expect(await f.query(id, 'SHOW max_connections')).toEqual([{ max_connections: '77' }])
  })

  test('a start of what runs and a stop of what is stopped succeed and change nothing', async () => {
    const before = await f.observed(id)
    await f.must({ kind: 'start-instance', instanceId: id })
    expect((await f.observed(id))?.postmasterPid).toBe(before?.postmasterPid)
  })

  test('is reported as crashed with its process gone, and a start brings it back with its rows', async () => {
    await f.query(id, 'create table kept as select 42 as answer')
    const pid = (await f.observed(id))?.postmasterPid as number
    process.kill(pid, 'SIGKILL')
    await f.waitForState(id, 'crashed')
    await waitUntil('its backends have ended too', () => readProcess(pid) === null)
    await f.must({ kind: 'start-instance', instanceId: id })
    expect(await f.query(id, 'select answer from kept')).toEqual([{ answer: 42 }])
  })

  test('a backend that crashes shows as starting and running again, without a task', async () => {
    const client = await f.connect(id)
    const pid = (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid as number
    const seen: string[] = []
    process.kill(pid, 'SIGKILL')
    await waitUntil('it answers again', async () => {
      const state = (await f.observed(id))?.state as string
      if (seen.at(-1) !== state) seen.push(state)
      return state === 'running' && (await f.query(id, 'select 1 as one')).length === 1
    })
    expect(seen).not.toContain('crashed')
  })

  test('a shutdown by hand is a stop and no crash', async () => {
    const pid = (await f.observed(id))?.postmasterPid as number
    process.kill(pid, 'SIGINT')
    const seen = await f.waitForState(id, 'stopped')
    expect(seen.because).toBe('it was shut down outside Floe')
    await f.must({ kind: 'start-instance', instanceId: id })
  })
})

describe('refusals', () => {
  test('a second task on a busy instance names the first', async () => {
    const id = await f.create()
    const first = await f.begin({ kind: 'start-instance', instanceId: id }, f.newKey('start'))
    const second = f.task.task.start.mutate({
      key: f.newKey('stop'),
      task: { kind: 'stop-instance', instanceId: asInstanceId(id), mode: 'fast' },
    })
    const fault = await second.then(
      () => null,
      (error) => agentFault(error),
    )
    await f.ended(first)
    expect(fault).toMatchObject({ code: 'task.instance_busy' })
    expect(fault?.detail).toContain(first.operationId)
  })

  test('the same key starts nothing twice, and nothing else', async () => {
    const id = await f.create()
    const key = f.newKey('start')
    await f.begin({ kind: 'start-instance', instanceId: id }, key)
    const first = await f.ended(key)
    await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
    await f.begin({ kind: 'start-instance', instanceId: id }, key)
    expect(await f.ended(key)).toMatchObject({ endedAt: first.endedAt, result: first.result })
    expect((await f.observed(id))?.state).toBe('stopped')
    const other = f.task.task.start.mutate({
      key,
      task: { kind: 'reload-instance', instanceId: asInstanceId(id) },
    })
    expect(await faultOf(other)).toBe('task.key_reused')
  })

  test('what a killed agent left of a file it was replacing is gone when it starts', async () => {
    const id = await f.create()
    const left = join(f.installation.instancesDirectory, id, 'pgdata/floe.conf.0123456789ab.tmp')
    await f.agent.end('SIGKILL')
    // of root and for nobody else: a backup of the data directory would fail at it
    writeFileSync(left, 'half', { mode: 0o600 })
    await f.agent.start()
    expect(existsSync(left)).toBe(false)
  })

  test('a key that was cancelled before it began never starts, also after a restart of the agent', async () => {
    const id = await f.create()
    const key = f.newKey('start')
    expect((await f.task.task.cancel.mutate(key)).state).toBe('cancelled')
    await f.agent.end('SIGKILL')
    await f.agent.start()
    const late = await f.task.task.start.mutate({
      key,
      task: { kind: 'start-instance', instanceId: asInstanceId(id) },
    })
    expect(late.state).toBe('cancelled')
    expect((await f.observed(id))?.state).toBe('stopped')
  })

  test('a name of another instance and a setting the engine refuses leave nothing behind', async () => {
    await f.create({ name: 'taken' })
    const before = (await f.read.report.read.query({ after: null })).instances.length
    const instanceId = randomUUID()
    const again = await f.run({
      kind: 'create-instance',
      instanceId,
      name: 'taken',
      settings: {},
      ownerPasswordVerifier: null,
    })
    expect(again.fault?.code).toBe('instance.name_taken')
    const refused = await f.run({
      kind: 'create-instance',
      instanceId,
      name: 'refused',
      settings: { shared_buffers: '900TB' },
      ownerPasswordVerifier: null,
    })
    expect(refused).toMatchObject({ state: 'failed' })
    expect((await f.read.report.read.query({ after: null })).instances).toHaveLength(before)
    expect(existsSync(`${f.installation.instancesDirectory}/${instanceId}`)).toBe(false)
  })

  test('an instance that does not exist is said', async () => {
    const unknown = f.read.setting.list.query({ instanceId: asInstanceId(randomUUID()) })
    expect(await faultOf(unknown)).toBe('instance.not_found')
    expect((await f.run({ kind: 'start-instance', instanceId: randomUUID() })).fault?.code).toBe(
      'instance.not_found',
    )
  })

  test('a name that could leave its directory is no name', async () => {
    const bad = f.task.task.start.mutate({
      key: f.newKey(),
      task: {
        kind: 'create-instance',
        instanceId: asInstanceId(randomUUID()),
        name: asInstanceName('../evil'),
        settings: {},
        ownerPasswordVerifier: null,
      },
    })
    expect(await faultOf(bad)).toBe('agent.bad_request')
  })
})

describe('a fast stop that hangs', () => {
  /** A checkpointer that stands still lets no shutdown end. */
  async function hanging() {
    const id = await f.createRunning()
    const [row] = await f.query<{ pid: number }>(
      id,
      "select pid from pg_stat_activity where backend_type = 'checkpointer'",
    )
    process.kill(row?.pid as number, 'SIGSTOP')
    return { id, checkpointer: row?.pid as number }
  }
  const stop = (instanceId: string, mode: 'fast' | 'immediate', more: object = {}) =>
    f.begin({ kind: 'stop-instance', instanceId, mode, ...more } as never, f.newKey(mode))

  test('is escalated by an immediate one, which is not refused; both end with it', async () => {
    const { id } = await hanging()
    const fast = await stop(id, 'fast')
    await f.waitForState(id, 'stopping')
    const second = f.task.task.start.mutate({
      key: f.newKey('fast'),
      task: { kind: 'stop-instance', instanceId: asInstanceId(id), mode: 'fast' },
    })
    expect(await faultOf(second)).toBe('task.instance_busy')
    const immediate = await stop(id, 'immediate')
    expect((await f.ended(immediate)).state).toBe('succeeded')
    expect((await f.ended(fast)).state).toBe('succeeded')
    expect(await f.observed(id)).toMatchObject({ state: 'stopped', postmasterPid: null })
    await f.must({ kind: 'start-instance', instanceId: id })
  })

  test('of a restart is escalated too, and the instance starts again', async () => {
    const { id } = await hanging()
    const before = (await f.observed(id))?.postmasterPid
    const restart = await f.begin({ kind: 'restart-instance', instanceId: id, mode: 'fast' })
    await f.waitForState(id, 'stopping')
    await f.ended(await stop(id, 'immediate'))
    expect((await f.ended(restart)).state).toBe('succeeded')
    const after = await f.observed(id)
    expect(after?.state).toBe('running')
    expect(after?.postmasterPid).not.toBe(before)
  })

  test('fails at its deadline, and can be given up; the engine goes on stopping', async () => {
    const { id, checkpointer } = await hanging()
    const late = await f.ended(await stop(id, 'fast', { deadlineMs: 300 }))
    expect(late.fault).toMatchObject({
      code: 'instance.not_stopped',
      hint: 'Stop it with mode "immediate".',
    })
    const given = await stop(id, 'fast')
    await f.task.task.cancel.mutate(given)
    expect((await f.ended(given)).state).toBe('cancelled')
    expect((await f.observed(id))?.state).toBe('stopping')
    process.kill(checkpointer, 'SIGCONT')
    await f.waitForState(id, 'stopped')
  })
})

describe('ports and deletion', () => {
  test('a port is used by one instance, stays with it while it is stopped, and is free again after the deletion', async () => {
    const a = await f.create()
    const b = await f.create()
    const port = (await f.observed(a))?.port
    expect((await f.observed(b))?.port).not.toBe(port)
    await f.must({
      kind: 'delete-instance',
      instanceId: a,
      confirmName: `t-${a.slice(0, 8)}`,
      keepFiles: false,
    })
    const c = await f.create()
    expect((await f.observed(c))?.port).toBe(port)
  })

  test('a deletion needs the name, ends the engine and keeps nothing', async () => {
    const id = await f.createRunning({ name: 'doomed' })
    const pid = (await f.observed(id))?.postmasterPid as number
    const wrong = await f.run({
      kind: 'delete-instance',
      instanceId: id,
      confirmName: 'domed',
      keepFiles: false,
    })
    expect(wrong.fault?.code).toBe('instance.not_confirmed')
    expect((await f.observed(id))?.state).toBe('running')
    const gone = await f.must({
      kind: 'delete-instance',
      instanceId: id,
      confirmName: 'doomed',
      keepFiles: false,
    })
    expect(gone).toEqual({ removed: true, keptDirectory: null })
    expect(await f.observed(id)).toBeUndefined()
    expect(readdirSync(f.installation.instancesDirectory).filter((e) => e.includes(id))).toEqual([])
    expect(readdirSync(`${f.agent.home.home}/agent/telemetry`)).not.toContain(id)
    expect(readProcess(pid)?.state ?? 'Z').toBe('Z')
  })

  test('files are kept when asked, shut down cleanly', async () => {
    const id = await f.createRunning({ name: 'keeper' })
    const kept = await f.must({
      kind: 'delete-instance',
      instanceId: id,
      confirmName: 'keeper',
      keepFiles: true,
    })
    expect(kept.removed).toBe(false)
    expect(existsSync(`${kept.keptDirectory}/pgdata/PG_VERSION`)).toBe(true)
    expect(existsSync(`${kept.keptDirectory}/pgdata/postmaster.pid`)).toBe(false)
  })

  test('a creation that is cancelled leaves nothing', async () => {
    const instanceId = randomUUID()
    const key = await f.begin({
      kind: 'create-instance',
      instanceId,
      name: 'never',
      settings: {},
      ownerPasswordVerifier: null,
    })
    await f.task.task.cancel.mutate(key)
    expect((await f.ended(key)).state).toBe('cancelled')
    expect(await f.observed(instanceId)).toBeUndefined()
    expect(readdirSync(f.installation.instancesDirectory).filter((e) => e.includes(instanceId))).toEqual([])
  })
})

test('a report is held until there is news, and comes at once when there is', async () => {
  const id = await f.create()
  const now = await f.read.report.read.query({ after: null })
  const waiting = f.read.report.read.query({ after: { bootId: now.bootId, seq: now.seq }, waitMs: 9_000 })
  await f.must({ kind: 'start-instance', instanceId: id })
  const next = await waiting
  expect(next.seq).toBeGreaterThan(now.seq)
  const other = await f.read.report.read.query({ after: { bootId: 'another life', seq: 1e9 }, waitMs: 9_000 })
  expect(other.bootId).toBe(now.bootId)
})
