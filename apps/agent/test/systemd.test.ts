import { copyFileSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beginUsersAt, copyEtc, PrivateSystemd, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packagedUnitName, unitName } from '../src/host/supervise-systemd'
import { AgentFixture } from './agent-fixture'

const reason = PrivateSystemd.reasonAgainst()

/** The agent runs in the namespace of a real systemd, so what it starts are real units. */
describe.skipIf(reason !== null)(`where systemd is the first process${reason ? ` (${reason})` : ''}`, () => {
  let f: AgentFixture
  let systemd: PrivateSystemd
  let id: string
  const users = { from: 48_100, to: 48_199 }
  beforeAll(async () => {
    f = await AgentFixture.start(
      4,
      async (home) => {
        const directory = dirname(home.home)
        beginUsersAt(join(directory, 'state'), users.from)
        systemd = await PrivateSystemd.start(directory)
        await systemd.run('mkdir', '-p', '/var/lib/floe')
        await systemd.run('mount', '--bind', join(directory, 'state'), '/var/lib/floe')
        return (command) => systemd.within(command)
      },
      { instanceUsers: users },
    )
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

const template = join(import.meta.dirname, '../src/host/floe-instance@.service')
const withTemplate = `where the package’s template is installed${reason ? ` (${reason})` : ''}`

/** A machine on which Floe's package is installed: the units of instances are made from its template. */
describe.skipIf(reason !== null)(withTemplate, () => {
  let f: AgentFixture
  let systemd: PrivateSystemd
  let id: string
  const users = { from: 48_000, to: 48_099 }
  /** Users of instances, and the template, are on a disk that outlives its power being cut. */
  const install = (directory: string) => {
    copyFileSync(template, join(copyEtc(directory), 'floe-instance@.service'))
    beginUsersAt(join(directory, 'state'), users.from)
  }
  const switchOn = async (directory: string) => {
    systemd = await PrivateSystemd.start(directory)
    await systemd.run('mkdir', '-p', '/var/lib/floe')
    await systemd.run('mount', '--bind', join(directory, 'etc'), '/etc')
    await systemd.run('mount', '--bind', join(directory, 'state'), '/var/lib/floe')
    await systemd.run('systemctl', 'daemon-reload')
  }
  beforeAll(async () => {
    f = await AgentFixture.start(
      4,
      async (home) => {
        install(dirname(home.home))
        await switchOn(dirname(home.home))
        return (command) => systemd.within(command)
      },
      { startCrashed: true, instanceUsers: users },
    )
    id = await f.createRunning()
  })
  afterAll(async () => {
    await f?.agent.end()
    await systemd?.end()
    await f?.remove()
  })
  const show = async (instanceId: string, name: string) =>
    (
      await systemd.run('systemctl', 'show', packagedUnitName(instanceId), '--value', `--property=${name}`)
    ).trim()
  const start = (instanceId: string) => systemd.run('systemctl', 'start', packagedUnitName(instanceId))
  const postmasterPid = (instanceId: string) =>
    readFileSync(join(f.dataDirectory(instanceId), 'postmaster.pid'), 'utf8').split('\n')[0]

  test('an engine is a unit of it, with its limits, enabled nowhere', async () => {
    expect(await show(id, 'MainPID')).toBe(postmasterPid(id))
    expect(await show(id, 'User')).toBe(`floe-${id.slice(-12)}`)
    expect(await show(id, 'Restart')).toBe('no')
    expect(await show(id, 'UnitFileState')).toBe('static')
    expect(await systemd.run('cat', `/proc/${postmasterPid(id)}/cgroup`)).toContain(
      `/floe.slice/${packagedUnitName(id)}`,
    )
    expect(await systemd.run('systemctl', 'cat', packagedUnitName(id))).toContain('CPUQuota=')
  })

  test('a person’s start is refused where the agent has not ordered one, and a unit without an order has no program', async () => {
    await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
    await start(id)
    expect(await show(id, 'ActiveState')).toBe('inactive')
    expect(await show(id, 'AssertResult')).toBe('no')
    expect(await start('other')).toContain('bad unit file setting')
    await f.must({ kind: 'start-instance', instanceId: id })
    expect(await show(id, 'ActiveState')).toBe('active')
  })

  test('after a restart of the machine the agent starts what ran, and a former primary stays down', async () => {
    const former = await f.createRunning()
    await f.must({ kind: 'fence-instance', instanceId: former, reason: 'another one took over' })
    await f.agent.end('SIGKILL')
    await systemd.end()
    await switchOn(dirname(f.agent.home.home))
    await f.agent.start()
    await waitUntil(
      'the agent starts it by itself',
      async () => (await f.observed(id))?.state === 'running',
      60_000,
    )
    expect(await show(id, 'MainPID')).toBe(postmasterPid(id))
    expect((await f.observed(former))?.state).not.toBe('running')
    await start(former)
    expect(await show(former, 'ActiveState')).toBe('inactive')
  }, 180_000)
})
