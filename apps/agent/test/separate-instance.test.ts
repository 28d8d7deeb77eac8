import { execFileSync } from 'node:child_process'
import {
  lstatSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { testEngineUser, waitUntil } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentFixture } from './agent-fixture'

const asRoot = process.getuid?.() === 0

/** Owners of everything below a directory, each once. */
const ownersBelow = (directory: string): string[] =>
  [
    ...new Set(execFileSync('find', [directory, '-printf', '%U\n'], { encoding: 'utf8' }).trim().split('\n')),
  ].sort()

const userOf = (pid: number): number => statSync(`/proc/${pid}`).uid

describe.runIf(asRoot)('users of instances', () => {
  let f: AgentFixture
  let [one, two] = ['', '']

  beforeAll(async () => {
    f = await AgentFixture.start()
    one = await f.createRunning()
    two = await f.createRunning()
  })
  afterAll(() => f.remove())

  const registryFile = (id: string) => join(f.agent.home.home, 'agent/instances', `${id}.json`)
  const registered = (id: string) => JSON.parse(readFileSync(registryFile(id), 'utf8'))

  /** The user that an instance had been given before it was made what an earlier version made. */
  function separatedUser(id: string): { name: string; uid: number } {
    const name = `floe-${id.slice(-12)}`
    const uid = Number(execFileSync('id', ['-u', name], { encoding: 'utf8' }))
    return { name, uid }
  }

  /** Makes an instance what an earlier version made: all of it belongs to the one engine user. */
  async function asBefore(id: string): Promise<void> {
    await f.must({ kind: 'stop-instance', instanceId: id, mode: 'fast' })
    await f.agent.end('SIGTERM')
    const { user: _own, ...former } = registered(id)
    writeFileSync(registryFile(id), JSON.stringify(former))
    const { uid, gid } = testEngineUser()
    for (const part of ['pgdata', 'log'])
      execFileSync('chown', ['-R', `${uid}:${gid}`, join(f.installation.instancesDirectory, id, part)])
    // root's own, in the engine user's directory
    writeFileSync(join(f.installation.instancesDirectory, id, 'log/start.log'), 'said at an earlier start\n')
    await f.agent.start()
    await f.must({ kind: 'start-instance', instanceId: id })
  }

  test('two instances have two users, neither of them root nor the former engine user', async () => {
    const uids = await Promise.all(
      [one, two].map(async (id) => userOf((await f.observed(id))?.postmasterPid as number)),
    )
    expect(new Set(uids).size).toBe(2)
    for (const uid of uids) expect([0, testEngineUser().uid]).not.toContain(uid)
    expect((await f.observed(one))?.user).toMatchObject({ own: true })
  })

  test('the superuser of one instance reaches neither the files nor the socket of another, nor the agent’s', async () => {
    const directory = f.installation.instancesDirectory
    for (const command of [
      `cat ${directory}/${two}/pgdata/PG_VERSION`,
      `ls ${directory}/${two}/pgdata`,
      `ls ${directory}/${two}/log`,
      `touch ${f.installation.socketDirectory}/planted`,
      `touch ${f.installation.socketDirectory}/${two.slice(-12)}/planted`,
      `cat ${f.agent.home.home}/config.json`,
    ])
      await expect(
        f.query(one, `copy (select 1) to program 'cat >/dev/null; ${command} && exit 0 || exit 1'`),
        command,
      ).rejects.toThrow(/program .* failed/)
    // the same words go through on what is its own
    await f.query(
      one,
      `copy (select 1) to program 'cat >/dev/null; cat ${directory}/${one}/pgdata/PG_VERSION'`,
    )
  })

  test('an engine has no capability, no group of anybody else, and no way to more', async () => {
    const status = readFileSync(`/proc/${(await f.observed(one))?.postmasterPid}/status`, 'utf8')
    const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(status)?.[1]?.trim()
    expect(field('NoNewPrivs')).toBe('1')
    expect(field('Groups')).toBe('')
    for (const name of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      expect(Number.parseInt(field(name) as string, 16), name).toBe(0)
  })

  test('a link at the old place of the socket keeps connection strings', async () => {
    const seen = await f.observed(one)
    const link = join(f.installation.socketDirectory, `.s.PGSQL.${seen?.port}`)
    expect(readlinkSync(link)).toBe(`${one.slice(-12)}/.s.PGSQL.${seen?.port}`)
    expect(lstatSync(f.installation.socketDirectory).uid).toBe(0)
    // every local client may pass, only the instance's user may write
    expect(lstatSync(join(f.installation.socketDirectory, one.slice(-12))).mode & 0o777).toBe(0o755)
  })

  test('an instance of an earlier version gets a user of its own, keeps its rows, and runs again', async () => {
    await f.query(one, 'create table kept as select generate_series(1, 1000) as i')
    await asBefore(one)
    expect((await f.observed(one))?.user).toEqual({ name: 'floe', own: false, separable: true })
    const { user, restarted } = await f.must({ kind: 'separate-instance', instanceId: one })
    expect(restarted).toBe(true)
    expect((await f.observed(one))?.user).toEqual({ name: user, own: true, separable: true })
    const { uid } = registered(one).user
    for (const part of ['pgdata', 'log'])
      expect(ownersBelow(join(f.installation.instancesDirectory, one, part))).toEqual([String(uid)])
    expect(await f.query(one, 'select count(*)::int as n from kept')).toEqual([{ n: 1000 }])
    // asked again it has nothing to do
    expect(await f.must({ kind: 'separate-instance', instanceId: one })).toMatchObject({
      user,
      restarted: false,
    })
  })

  test('what does not fit is named, and the instance was not stopped for it', async () => {
    await asBefore(one)
    const before = (await f.observed(one))?.postmasterPid
    const link = join(f.dataDirectory(one), 'leads-away')
    symlinkSync('/etc/shadow', link)
    const status = await f.run({ kind: 'separate-instance', instanceId: one })
    expect(status.fault).toMatchObject({ code: 'instance.not_separated' })
    expect(status.fault?.detail).toContain('leads-away')
    expect((await f.observed(one))?.postmasterPid).toBe(before)
    expect(lstatSync('/etc/shadow').uid).toBe(0)
    unlinkSync(link)
    await f.must({ kind: 'separate-instance', instanceId: one })
  })

  test('killed at any moment, the agent ends it right when it is back', { timeout: 180_000 }, async () => {
    // null: as soon as its files are the new user's, which it is not started with yet
    for (const afterMs of [20, 120, 250, 400, null]) {
      await asBefore(one)
      const key = await f.begin({ kind: 'separate-instance', instanceId: one })
      if (afterMs !== null) await new Promise((resolve) => setTimeout(resolve, afterMs))
      else await waitUntil('its files are handed over', () => Boolean(registered(one).user), 15_000, 1)
      await f.agent.end('SIGKILL')
      await f.agent.start()
      expect(await f.ended(key), `killed after ${afterMs}`).toMatchObject({ state: 'succeeded' })
      await f.waitForState(one, 'running')
      expect((await f.observed(one))?.user?.own).toBe(true)
      expect(ownersBelow(f.dataDirectory(one))).toEqual([String(registered(one).user.uid)])
      expect(await f.query(one, 'select count(*)::int as n from kept')).toEqual([{ n: 1000 }])
    }
  })

  test('killed between two of its directories, or before their new owner was written down, it goes on', async () => {
    for (const handedOver of [['pgdata'], ['pgdata', 'log']]) {
      await asBefore(one)
      const { name, uid } = separatedUser(one)
      await f.must({ kind: 'stop-instance', instanceId: one, mode: 'fast' })
      // as the killed run had done before it began with the files
      unlinkSync(join(f.installation.instancesDirectory, one, 'log/start.log'))
      for (const part of handedOver)
        execFileSync('chown', ['-R', `${uid}:${uid}`, join(f.installation.instancesDirectory, one, part)])
      expect(await f.must({ kind: 'separate-instance', instanceId: one })).toMatchObject({ user: name })
      expect(ownersBelow(join(f.installation.instancesDirectory, one, 'log'))).toEqual([String(uid)])
      await f.must({ kind: 'start-instance', instanceId: one })
      expect(await f.query(one, 'select count(*)::int as n from kept')).toEqual([{ n: 1000 }])
    }
  })

  test('a deleted instance leaves no process, no user and no socket, and its uid is not given out again', async () => {
    const { uid, name } = registered(two).user
    const { port } = (await f.observed(two)) ?? {}
    // something that its superuser left running
    await f.query(
      two,
      `copy (select 1) to program 'cat >/dev/null; setsid sleep 600 >/dev/null 2>&1 & exit 0'`,
    )
    const running = () =>
      execFileSync('ps', ['-eo', 'state=,uid='], { encoding: 'utf8' })
        .split('\n')
        // one that nobody has reaped has ended
        .filter((line) => !line.startsWith('Z'))
        .map((line) => Number(line.slice(2)))
    await waitUntil('the left process runs', async () => running().includes(uid))
    const observed = await f.observed(two)
    await f.must({
      kind: 'delete-instance',
      instanceId: two,
      confirmName: observed?.name as string,
      keepFiles: false,
    })
    expect(running()).not.toContain(uid)
    expect(readFileSync('/etc/passwd', 'utf8')).not.toContain(`${name}:`)
    expect(() => lstatSync(join(f.installation.socketDirectory, `.s.PGSQL.${port}`))).toThrow('ENOENT')
    expect(() => lstatSync(join(f.installation.socketDirectory, two.slice(-12)))).toThrow('ENOENT')
    const three = await f.create()
    expect(registered(three).user.uid).toBeGreaterThan(uid)
  })
})
