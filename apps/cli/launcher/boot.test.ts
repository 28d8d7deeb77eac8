import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beginUsersAt, copyEtc, PrivateSystemd } from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { programNames } from '../src/process/records'
import { buildWorkspace } from '../src/up/workspace-build'
import { checkout, freePorts, launcher, type Status, until } from './private-home'

/** What the launcher that runs these tests has set for itself. */
const outer = ['FLOE_LOG', 'FLOE_STARTED', 'FLOE_CHECKOUT'].flatMap((name) => ['-u', name])

const reason = PrivateSystemd.reasonAgainst()

/** Of the range that instances have by default, the end that other suites hardly come to. */
const LAST_USERS = 59_900

/** A machine with systemd: its files are this one's, save what lies in a directory that outlives its power being cut. */
describe.skipIf(reason !== null)(`with its machine${reason ? ` (${reason})` : ''}`, () => {
  const disk = mkdtempSync(join(tmpdir(), 'floe-boot-'))
  const home = join(disk, 'home')
  let systemd: PrivateSystemd
  let unit: string
  let instanceId: string

  async function switchOn() {
    systemd = await PrivateSystemd.start(disk)
    await systemd.run('mkdir', '-p', '/var/lib/floe')
    await systemd.run('mount', '--bind', join(disk, 'etc'), '/etc')
    await systemd.run('mount', '--bind', join(disk, 'state'), '/var/lib/floe')
    await systemd.run('systemctl', 'daemon-reload')
  }

  /** Runs `./floe …` in the machine, and answers what it printed as JSON. */
  async function floe<T>(...args: string[]): Promise<T> {
    const words = [
      '-c',
      'exec "$@" 2>"$0"',
      join(disk, 'stderr'),
      'env',
      ...outer,
      `FLOE_HOME=${home}`,
      launcher,
    ]
    const output = await systemd.run('sh', ...words, ...args, '--json')
    try {
      // a shell that enters the machine finds no directory that it is in, and says so first
      return JSON.parse(output.slice(output.indexOf('{'))) as T
    } catch {
      throw new Error(`floe ${args.join(' ')}: ${output}${readFileSync(join(disk, 'stderr'), 'utf8')}`)
    }
  }
  const is = async (word: string, name: string) => (await systemd.run('systemctl', word, name)).trim()
  const status = () => floe<Status>('status')
  const registration = () => join(home, 'agent/instances', `${instanceId}.json`)

  beforeAll(async () => {
    chmodSync(disk, 0o755)
    for (const name of ['home', 'state']) mkdirSync(join(disk, name))
    beginUsersAt(join(disk, 'state'), LAST_USERS)
    copyEtc(disk)
    // in the machine it would be built on a disk that is gone with it
    process.env.FLOE_CHECKOUT ??= checkout
    await buildWorkspace({ now: () => {}, log: () => {} }, programNames)
    await switchOn()
    const base = await freePorts(24)
    await floe('up', '--port', String(base), '--instance-ports', `${base + 3}-${base + 23}`, '--at-boot')
    const configuration = JSON.parse(readFileSync(join(home, 'config.json'), 'utf8')) as { hostId: string }
    unit = `floe-${configuration.hostId.slice(0, 8)}`
    instanceId = (await floe<{ instanceId: string }>('instance', 'create', 'demo')).instanceId
  })
  afterAll(async () => {
    await systemd?.end()
    rmSync(disk, { recursive: true, force: true })
  })

  test('a unit starts it, and the supervisor is in one of its own', async () => {
    expect(await is('is-enabled', unit)).toBe('enabled')
    expect(readdirSync(join(disk, 'etc/systemd/system/multi-user.target.wants'))).toEqual([`${unit}.service`])
    await until('the unit counts as started', async () => (await is('is-active', unit)) === 'active')
    expect(await is('is-active', `${unit}-supervisor`)).toBe('active')
    expect((await status()).state).toBe('running')
  })

  test('a supervisor that was killed comes back, and restarts nothing', async () => {
    const before = (await status()).processes
    const pidOf = (name: string, all = before) => all.find((p) => p.name === name)?.pid
    await systemd.run('kill', '-9', String(pidOf('supervisor')))
    await until('there is another supervisor', async () => {
      const now = (await status()).processes
      const pid = pidOf('supervisor', now)
      return pid != null && pid !== pidOf('supervisor')
    })
    const after = (await status()).processes
    for (const name of ['agent', 'controller', 'web', 'control-database'])
      expect([name, pidOf(name, after)]).toEqual([name, pidOf(name)])
  })

  test('a shutdown ends the agent before instances, so their end is nobody’s wish', async () => {
    // one transaction, as a shutdown is: only the order of the units decides what ends first
    const said = await systemd.run('systemctl', 'stop', unit, `floe-instance-${instanceId}`)
    // what stops Floe is a verb of its own, which says only in its status that it could not
    expect([said, await is('is-failed', unit)]).toEqual(['', 'inactive'])
    const { state, processes, instancesRunning } = await status()
    expect({ state, processes, instancesRunning }).toMatchObject({ state: 'stopped', instancesRunning: [] })
    expect(JSON.parse(readFileSync(registration(), 'utf8'))).toMatchObject({ expected: 'running' })
  })

  test('when the machine starts again, everything is back, the instance too', async () => {
    await systemd.end()
    // the kernel is the same one here: what was seen before is said to be of another start of the machine
    const seen = JSON.parse(readFileSync(registration(), 'utf8'))
    writeFileSync(registration(), JSON.stringify({ ...seen, workedInBoot: 'another' }))
    await switchOn()
    await systemd.run('systemctl', 'start', unit)
    expect(await is('is-active', unit)).toBe('active')
    expect((await status()).state).toBe('running')
    await until('the instance runs', async () => (await status()).instancesRunning.includes('demo'))
  })

  test('it does so no more once that is said', async () => {
    await floe('up', '--no-at-boot')
    expect(await is('is-enabled', unit)).not.toBe('enabled')
    expect(readdirSync(join(disk, 'etc/systemd/system')).filter((name) => name.startsWith('floe-'))).toEqual(
      [],
    )
    expect((await status()).state).toBe('running')
  })
})
