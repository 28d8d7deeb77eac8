import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PrivateSystemd, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { unitName } from '../src/host/supervise-systemd'
import { AgentFixture } from './agent-fixture'

const reason = PrivateSystemd.reasonAgainst()

/** The agent runs in the namespace of a real systemd, so what it starts are real units. */
describe.skipIf(reason !== null)(`where systemd is the first process${reason ? ` (${reason})` : ''}`, () => {
  let f: AgentFixture
  let systemd: PrivateSystemd
  let id: string
  beforeAll(async () => {
    f = await AgentFixture.start(4, async (home) => {
      systemd = await PrivateSystemd.start(dirname(home.home))
      return (command) => systemd.within(command)
    })
    id = await f.createRunning()
  })
  afterAll(async () => {
    await f?.agent.end()
    await systemd?.end()
    await f?.remove()
  })

  const unit = async () =>
    Object.fromEntries(
      (await systemd.run('systemctl', 'show', unitName(id), '--property=ActiveState,Type,User,MainPID,Slice'))
        .trim()
        .split('\n')
        .map((line) => line.split('=') as [string, string]),
    )
  const postmasterPid = () => readFileSync(join(f.dataDirectory(id), 'postmaster.pid'), 'utf8').split('\n')[0]
  const engineLog = () => {
    const directory = join(dirname(f.dataDirectory(id)), 'log')
    return readdirSync(directory)
      .filter((name) => name.endsWith('.log'))
      .map((name) => readFileSync(join(directory, name), 'utf8'))
      .join('')
  }

  test('an engine is a unit of its own, ready when it says so, under the engine’s user', async () => {
    expect(await unit()).toEqual({
      Type: 'notify',
      ActiveState: 'active',
      User: `floe-${id.slice(-12)}`,
      Slice: 'floe.slice',
      MainPID: postmasterPid(),
    })
    expect(await systemd.run('cat', `/proc/${postmasterPid()}/cgroup`)).toContain(
      `/floe.slice/${unitName(id)}`,
    )
  })

  test('it outlives the agent, is adopted, and a stop is a fast shutdown after which no unit is left', async () => {
    const pid = postmasterPid()
    await f.agent.end('SIGKILL')
    expect(await f.queryPort(id, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
    await f.agent.start()
    await f.waitForState(id, 'running')
    expect(postmasterPid()).toBe(pid)
    await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
    expect(engineLog()).toContain('received fast shutdown request')
    await waitUntil('the unit is gone', async () => (await unit()).ActiveState === 'inactive')
  })

  test('systemd’s own stop is a fast shutdown, too', async () => {
    await f.must({ kind: 'start-instance', instanceId: id })
    const before = engineLog().split('received fast shutdown request').length
    await systemd.run('systemctl', 'stop', unitName(id))
    expect(engineLog().split('received fast shutdown request').length).toBe(before + 1)
    expect(engineLog()).not.toContain('not properly shut down')
    await waitUntil('the agent sees it', async () => (await f.observed(id))?.state !== 'running')
  })

  test('a unit whose postmaster was killed does not stand in the way of the next start', async () => {
    await f.must({ kind: 'start-instance', instanceId: id })
    await systemd.run('kill', '-9', postmasterPid() ?? '')
    await waitUntil('the agent sees it', async () => (await f.observed(id))?.state !== 'running')
    await f.must({ kind: 'start-instance', instanceId: id })
    expect((await unit()).ActiveState).toBe('active')
    expect(engineLog()).toContain('not properly shut down')
  })
})
