import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { TaskKey } from '@floe/agent-contract'
import { listPids, processDirectory } from '@floe/host/process-facts'
import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readManagedSettings } from '../src/engine/settings/managed-file'
import { seal } from '../src/engine/settings/tracked-files'
import { AgentFixture, killedAt, type TaskRequest } from './agent-fixture'

let f: AgentFixture
/** Shared by the cases that leave an instance as they found it. */
let shared: string
beforeAll(async () => {
  f = await AgentFixture.start(40)
  shared = await f.create({ name: 'shared' })
})
afterAll(() => f.remove())

/** Starts a task, kills the agent so many ms later, starts it again and waits for the task's end. */
async function killedAfter(ms: number, task: TaskRequest) {
  const key: TaskKey = await f.begin(task)
  await killAndReturn(ms)
  return f.ended(key)
}

async function killAndReturn(ms: number): Promise<void> {
  // the moment of the kill is what is tried out here; nothing waits for an effect of it
  await new Promise((resolve) => setTimeout(resolve, ms))
  await f.agent.end('SIGKILL')
  await f.agent.start()
}

test('what an earlier version started serves TLS as soon as this one runs, and its files are no drift', async () => {
  const id = await f.createRunning()
  const ssl = async () =>
    (await f.queryPort<{ ssl: string }>(id, `select current_setting('ssl') as ssl`))[0]?.ssl
  expect(await ssl()).toBe('on')
  // as the earlier version left it: no certificate, and no line that brings one in
  const directory = f.dataDirectory(id)
  await f.agent.end('SIGKILL')
  for (const file of ['floe.tls.conf', 'floe_server.pem']) rmSync(`${directory}/${file}`)
  const settings = readManagedSettings(`${directory}/floe.conf`)
  const lines = [...settings].map(([name, value]) => `${name} = '${value}'\n`).join('')
  writeFileSync(`${directory}/floe.conf`, seal(`${lines}\ninclude_if_exists 'floe.cluster.conf'\n`))
  process.kill(postmasterOf(directory), 'SIGHUP')
  await waitUntil('TLS is off', async () => (await ssl()) === 'off')
  await f.agent.start()
  await waitUntil('TLS is on', async () => (await ssl()) === 'on')
  expect(readManagedSettings(`${directory}/floe.conf`)).toEqual(settings)
  expect((await f.observed(id))?.settingDrift).toEqual([])
})

const postmasterOf = (directory: string) =>
  Number(readFileSync(`${directory}/postmaster.pid`, 'utf8').split('\n')[0])
const directoriesOf = (id: string) =>
  readdirSync(f.installation.instancesDirectory).filter((e) => e.includes(id))
const processesIn = (directory: string) =>
  listPids().filter((p) => processDirectory(p)?.startsWith(directory))

describe('no task is lost when the agent is killed', () => {
  test.each(killedAt(0, 60, 300, 800, 1_500))('while it creates an instance, after %i ms', async (ms) => {
    const instanceId = randomUUID()
    const name = `k-${instanceId.slice(0, 8)}`
    const status = await killedAfter(ms, {
      kind: 'create-instance',
      instanceId,
      name,
      settings: {},
      ownerPasswordVerifier: null,
    })
    expect(status).toMatchObject({ state: 'succeeded', fault: null })
    expect(status.result?.port).toBe((await f.observed(instanceId))?.port)
    // one whole data directory, no leavings of the first run, no process of it
    expect(readdirSync(`${f.installation.instancesDirectory}/${instanceId}`).sort()).toEqual([
      'log',
      'pgdata',
      'registration.json',
    ])
    expect(processesIn(`${f.installation.instancesDirectory}/${instanceId}`)).toEqual([])
    await f.must({ kind: 'start-instance', instanceId })
    await f.must({ kind: 'delete-instance', instanceId, confirmName: name, keepFiles: false })
  })

  test.each(killedAt(0, 20, 60, 120, 250))('while it starts an instance, after %i ms', async (ms) => {
    await f.must({ kind: 'stop-instance', instanceId: shared, mode: 'immediate' })
    const status = await killedAfter(ms, { kind: 'start-instance', instanceId: shared })
    expect(status.state).toBe('succeeded')
    expect((await f.observed(shared))?.state).toBe('running')
    expect(await f.query(shared, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test.each(killedAt(0, 20, 60, 150))('while it stops an instance, after %i ms', async (ms) => {
    await f.must({ kind: 'start-instance', instanceId: shared })
    const status = await killedAfter(ms, { kind: 'stop-instance', instanceId: shared, mode: 'fast' })
    expect(status.state).toBe('succeeded')
    expect((await f.observed(shared))?.state).toBe('stopped')
  })

  test.each(killedAt(0, 50, 150, 300, 600))('while it restarts an instance, after %i ms', async (ms) => {
    await f.must({ kind: 'start-instance', instanceId: shared })
    const before = (await f.observed(shared))?.postmasterPid
    const status = await killedAfter(ms, { kind: 'restart-instance', instanceId: shared, mode: 'fast' })
    expect(status.state).toBe('succeeded')
    const after = await f.observed(shared)
    expect(after?.state).toBe('running')
    expect(after?.postmasterPid).not.toBe(before)
  })

  test.each(killedAt(0, 30, 80, 200, 500))('while it changes settings, after %i ms', async (ms) => {
    await f.must({ kind: 'start-instance', instanceId: shared })
    const changes = [
      { name: 'work_mem', value: `${9_000 + ms}kB` },
      { name: 'max_connections', value: String(60 + ms) },
    ]
    const status = await killedAfter(ms, { kind: 'change-settings', instanceId: shared, changes })
    expect(status.state).toBe('succeeded')
    const asked = `select current_setting('work_mem') as mem, pending_restart as pending from pg_settings where name = 'max_connections'`
    expect(await f.query(shared, asked)).toEqual([{ mem: `${9_000 + ms}kB`, pending: true }])
    expect(readdirSync(f.dataDirectory(shared)).filter((e) => /\.(tmp|trial)$/.test(e))).toEqual([])
  })

  test('after it wrote settings that turn out wrong: the next run finds the former ones', async () => {
    await f.must({ kind: 'start-instance', instanceId: shared })
    await f.must({
      kind: 'change-settings',
      instanceId: shared,
      changes: [{ name: 'work_mem', value: '11MB' }],
    })
    // a reload hangs on a postmaster that stands still, so the kill finds the task between write and confirmation
    const pid = (await f.observed(shared))?.postmasterPid as number
    await f.query(
      shared,
      `create or replace function keep_out() returns event_trigger language plpgsql as $$
       begin if current_setting('work_mem') = '7777kB' then raise exception 'kept out'; end if; end $$;
       create event trigger keep_out on login execute function keep_out()`,
    )
    const managed = () => readFileSync(`${f.dataDirectory(shared)}/floe.conf`, 'utf8')
    const key = await f.begin({
      kind: 'change-settings',
      instanceId: shared,
      changes: [{ name: 'work_mem', value: '7777kB' }],
    })
    await waitUntil('the file is written', () => managed().includes('7777kB'), 15_000, 1)
    process.kill(pid, 'SIGSTOP')
    const between = managed().includes('7777kB')
    await f.agent.end('SIGKILL')
    process.kill(pid, 'SIGCONT')
    await f.agent.start()
    const status = await f.ended(key)
    expect(between).toBe(true)
    expect(status).toMatchObject({ state: 'failed' })
    expect(managed()).toContain("work_mem = '11MB'")
    await waitUntil('it lets people in', async () => (await f.query(shared, 'select 1 as one')).length === 1)
    await f.query(shared, 'drop event trigger keep_out; drop function keep_out')
  })

  test('after it wrote settings: old and new values are those of before the first run', async () => {
    await f.must({ kind: 'start-instance', instanceId: shared })
    await f.must({
      kind: 'change-settings',
      instanceId: shared,
      changes: [{ name: 'work_mem', value: '11MB' }],
    })
    const managed = () => readFileSync(`${f.dataDirectory(shared)}/floe.conf`, 'utf8')
    const key = await f.begin({
      kind: 'change-settings',
      instanceId: shared,
      changes: [{ name: 'work_mem', value: '13MB' }],
    })
    await waitUntil('the file is written', () => managed().includes('13MB'), 15_000, 1)
    await f.agent.end('SIGKILL')
    const pid = Number(readFileSync(`${f.dataDirectory(shared)}/postmaster.pid`, 'utf8').split('\n')[0])
    process.kill(pid, 'SIGHUP')
    await waitUntil('it is in force', async () => {
      const [row] = await f.queryPort<{ mem: string }>(shared, "select current_setting('work_mem') as mem")
      return row?.mem === '13MB'
    })
    await f.agent.start()
    expect((await f.ended(key)).result?.confirmed).toEqual([
      { name: 'work_mem', oldValue: '11MB', newValue: '13MB', pendingRestart: false },
    ])
  })

  test('a task’s file that is torn is put aside and told of, and the agent starts', async () => {
    const directory = `${f.agent.home.home}/agent/tasks`
    const torn = `${randomUUID()}.start.1.json`
    await f.agent.end('SIGKILL')
    writeFileSync(`${directory}/${torn}`, '{"version":1,"key":{')
    await f.agent.start()
    const problems = async () => (await f.read.report.read.query({ after: null })).problems ?? []
    expect((await problems()).map((p) => p.fault.code)).toEqual(['agent.tasks_unreadable'])
    const [aside] = readdirSync(`${directory}/unreadable`)
    expect(aside).toContain(torn)
    rmSync(`${directory}/unreadable/${aside}`)
    await f.agent.end('SIGTERM')
    await f.agent.start()
    expect(await problems()).toEqual([])
  })

  test.each(killedAt(0, 20, 60, 150))('while it resolves drift, after %i ms', async (ms) => {
    await f.must({ kind: 'start-instance', instanceId: shared })
    const value = `${200 + ms}`
    await f.query(shared, `alter system set vacuum_cost_limit = ${value}`)
    await f.query(shared, 'select pg_reload_conf()')
    await waitUntil(
      'the drift is seen',
      async () => ((await f.observed(shared))?.settingDrift ?? []).length === 1,
    )
    const status = await killedAfter(ms, { kind: 'resolve-drift', instanceId: shared, how: 'adopt' })
    expect(status).toMatchObject({
      state: 'succeeded',
      result: { confirmed: [{ name: 'vacuum_cost_limit', newValue: value }] },
    })
    const asked = `select setting, sourcefile like '%/floe.conf' as ours from pg_settings where name = 'vacuum_cost_limit'`
    expect(await f.query(shared, asked)).toEqual([{ setting: value, ours: true }])
    expect((await f.observed(shared))?.settingDrift).toEqual([])
  })

  test.each(killedAt(0, 30, 100))('while it deletes an instance, after %i ms', async (ms) => {
    const instanceId = await f.createRunning()
    const confirmName = `t-${instanceId.slice(0, 8)}`
    const status = await killedAfter(ms, {
      kind: 'delete-instance',
      instanceId,
      confirmName,
      keepFiles: false,
    })
    expect(status).toMatchObject({ state: 'succeeded', result: { removed: true } })
    expect(await f.observed(instanceId)).toBeUndefined()
    expect(directoriesOf(instanceId)).toEqual([])
  })

  test('a cancel that was asked for holds over the kill', async () => {
    const instanceId = randomUUID()
    const key = await f.begin({
      kind: 'create-instance',
      instanceId,
      name: 'cancelled',
      settings: {},
      ownerPasswordVerifier: null,
    })
    void f.task.task.cancel.mutate(key).catch(() => {})
    await killAndReturn(5)
    const status = await f.ended(key)
    // the kill may have come before the cancel was heard; then it was created in full
    if (status.state === 'cancelled') expect(directoriesOf(instanceId)).toEqual([])
    else {
      expect(status.state).toBe('succeeded')
      await f.must({ kind: 'delete-instance', instanceId, confirmName: 'cancelled', keepFiles: false })
    }
  })
})

describe('engines outlive the agent', () => {
  test('an instance runs on, is adopted with the same process, and its clients notice nothing', async () => {
    await f.must({ kind: 'start-instance', instanceId: shared })
    const client = await f.connect(shared)
    const before = await f.observed(shared)
    await f.agent.end('SIGKILL')
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    await f.agent.start()
    const after = await f.observed(shared)
    expect(after).toMatchObject({ state: 'running', postmasterPid: before?.postmasterPid })
    expect((await client.query('select 2 as two')).rows).toEqual([{ two: 2 }])
    await client.end()
  })

  test('an orderly stop of the agent leaves instances running too', async () => {
    await f.must({ kind: 'start-instance', instanceId: shared })
    const before = await f.observed(shared)
    await f.agent.end('SIGTERM')
    expect(existsSync(`/proc/${before?.postmasterPid}`)).toBe(true)
    await f.agent.start()
    expect(await f.observed(shared)).toMatchObject({
      state: 'running',
      postmasterPid: before?.postmasterPid,
    })
  })

  test('an instance that crashed while there was no agent is reported as crashed', async () => {
    await f.must({ kind: 'start-instance', instanceId: shared })
    const pid = (await f.observed(shared))?.postmasterPid as number
    await f.agent.end('SIGKILL')
    process.kill(pid, 'SIGKILL')
    await waitUntil('its processes have ended', () => processesIn(f.dataDirectory(shared)).length === 0)
    await f.agent.start()
    expect((await f.waitForState(shared, 'crashed')).postmasterPid).toBeNull()
  })

  test('a pid file whose pid is another process by now is not taken for a running engine', async () => {
    await f.must({ kind: 'start-instance', instanceId: shared })
    const pid = (await f.observed(shared))?.postmasterPid as number
    process.kill(pid, 'SIGKILL')
    await f.waitForState(shared, 'crashed')
    const path = `${f.dataDirectory(shared)}/postmaster.pid`
    writeFileSync(path, readFileSync(path, 'utf8').replace(/^\d+/, String(process.pid)))
    await f.agent.end('SIGKILL')
    await f.agent.start()
    expect((await f.observed(shared))?.state).toBe('crashed')
    // the killed process may not have been reaped yet: the start waits for that by itself
    writeFileSync(path, readFileSync(path, 'utf8').replace(/^\d+/, String(pid)))
    await f.must({ kind: 'start-instance', instanceId: shared })
  })
})
