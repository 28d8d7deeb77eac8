import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import type { TaskKey } from '@floe/agent-contract'
import { waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listPids, processDirectory } from '../src/host/process-table'
import { AgentFixture, type TaskRequest } from './agent-fixture'

let f: AgentFixture
beforeAll(async () => {
  f = await AgentFixture.start(40)
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

const directoriesOf = (id: string) =>
  readdirSync(f.installation.instancesDirectory).filter((e) => e.includes(id))
const processesIn = (directory: string) =>
  listPids().filter((p) => processDirectory(p)?.startsWith(directory))

describe('no task is lost when the agent is killed', () => {
  test.each([0, 40, 150, 400, 800, 1_200, 1_800])('while it creates an instance, after %i ms', async (ms) => {
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
    ])
    expect(processesIn(`${f.installation.instancesDirectory}/${instanceId}`)).toEqual([])
    await f.must({ kind: 'start-instance', instanceId })
    await f.must({ kind: 'delete-instance', instanceId, confirmName: name, keepFiles: false })
  })

  test.each([0, 20, 60, 120, 250])('while it starts an instance, after %i ms', async (ms) => {
    const instanceId = await f.create()
    const status = await killedAfter(ms, { kind: 'start-instance', instanceId })
    expect(status.state).toBe('succeeded')
    expect((await f.observed(instanceId))?.state).toBe('running')
    expect(await f.query(instanceId, 'select 1 as one')).toEqual([{ one: 1 }])
    await remove(instanceId)
  })

  test.each([0, 20, 60, 150])('while it stops an instance, after %i ms', async (ms) => {
    const instanceId = await f.createRunning()
    const status = await killedAfter(ms, { kind: 'stop-instance', instanceId, mode: 'fast' })
    expect(status.state).toBe('succeeded')
    expect((await f.observed(instanceId))?.state).toBe('stopped')
    await remove(instanceId)
  })

  test.each([0, 50, 150, 300, 600])('while it restarts an instance, after %i ms', async (ms) => {
    const instanceId = await f.createRunning()
    const before = (await f.observed(instanceId))?.postmasterPid
    const status = await killedAfter(ms, { kind: 'restart-instance', instanceId, mode: 'fast' })
    expect(status.state).toBe('succeeded')
    const after = await f.observed(instanceId)
    expect(after?.state).toBe('running')
    expect(after?.postmasterPid).not.toBe(before)
    await remove(instanceId)
  })

  test.each([0, 30, 80, 200, 500])('while it changes settings, after %i ms', async (ms) => {
    const instanceId = await f.createRunning()
    const changes = [
      { name: 'work_mem', value: '9MB' },
      { name: 'max_connections', value: '77' },
    ]
    const status = await killedAfter(ms, { kind: 'change-settings', instanceId, changes })
    expect(status.state).toBe('succeeded')
    const asked =
      "select current_setting('work_mem') as mem, (select pending_restart from pg_settings where name = 'max_connections') as pending"
    expect(await f.query(instanceId, asked)).toEqual([{ mem: '9MB', pending: true }])
    expect(readdirSync(f.dataDirectory(instanceId)).filter((e) => /\.(tmp|trial)$/.test(e))).toEqual([])
    await remove(instanceId)
  })

  test.each([0, 20, 60, 150])('while it deletes an instance, after %i ms', async (ms) => {
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
    const instanceId = await f.createRunning()
    const client = await f.connect(instanceId)
    const before = await f.observed(instanceId)
    await f.agent.end('SIGKILL')
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    await f.agent.start()
    const after = await f.observed(instanceId)
    expect(after).toMatchObject({ state: 'running', postmasterPid: before?.postmasterPid })
    expect((await client.query('select 2 as two')).rows).toEqual([{ two: 2 }])
    await client.end()
    await remove(instanceId)
  })

  test('an orderly stop of the agent leaves instances running too', async () => {
    const instanceId = await f.createRunning()
    const before = await f.observed(instanceId)
    await f.agent.end('SIGTERM')
    expect(existsSync(`/proc/${before?.postmasterPid}`)).toBe(true)
    await f.agent.start()
    expect(await f.observed(instanceId)).toMatchObject({
      state: 'running',
      postmasterPid: before?.postmasterPid,
    })
    await remove(instanceId)
  })

  test('an instance that crashed while there was no agent is reported as crashed', async () => {
    const instanceId = await f.createRunning()
    const pid = (await f.observed(instanceId))?.postmasterPid as number
    await f.agent.end('SIGKILL')
    process.kill(pid, 'SIGKILL')
    await waitUntil('its processes have ended', () => processesIn(f.dataDirectory(instanceId)).length === 0)
    await f.agent.start()
    expect((await f.waitForState(instanceId, 'crashed')).postmasterPid).toBeNull()
    await remove(instanceId)
  })

  test('a pid file whose pid is another process by now is not taken for a running engine', async () => {
    const instanceId = await f.createRunning()
    const pid = (await f.observed(instanceId))?.postmasterPid as number
    process.kill(pid, 'SIGKILL')
    await f.waitForState(instanceId, 'crashed')
    const path = `${f.dataDirectory(instanceId)}/postmaster.pid`
    const { readFileSync, writeFileSync } = await import('node:fs')
    writeFileSync(path, readFileSync(path, 'utf8').replace(/^\d+/, String(process.pid)))
    await f.agent.end('SIGKILL')
    await f.agent.start()
    expect((await f.observed(instanceId))?.state).toBe('crashed')
    writeFileSync(path, readFileSync(path, 'utf8').replace(/^\d+/, String(pid)))
    await f.must({ kind: 'start-instance', instanceId })
    await remove(instanceId)
  })
})

async function remove(instanceId: string): Promise<void> {
  await f.must({
    kind: 'delete-instance',
    instanceId,
    confirmName: `t-${instanceId.slice(0, 8)}`,
    keepFiles: false,
  })
}
