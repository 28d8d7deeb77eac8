import { execFile, execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitUntil } from '@floe/host/wait'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HostsInNamespaces, type NamespaceHost } from '../src/bench/chaos/hosts-in-namespaces'
import { emptyDisk, guest, here, RunningGuest } from './guest/machine'
import { field, laterPackages } from './later-packages'

const checkout = join(import.meta.dirname, '../../..')
const terraform = process.env.FLOE_TEST_TERRAFORM ?? 'terraform'
const missing = terraform === '' ? ' (left out: there is neither terraform nor tofu)' : here
const MINUTE_MS = 60_000
/** An emulated processor starts a program in seconds. */
const BOUND_MS = 10 * MINUTE_MS

type Ended = { status: number; stdout: string; stderr: string }

/**
 * A machine that starts with the user data of the Terraform module, and a console that "./floe up" made, on a network of their
 * own: from the first start to a failover while it is off. One test goes on from where the one before it ended.
 */
describe.skipIf(guest === '' || terraform === '')(`a host from its user data${missing}`, () => {
  let room: string
  let net: HostsInNamespaces
  let console: NamespaceHost
  let port: ReturnType<HostsInNamespaces['addMachine']>
  let machine: RunningGuest | undefined
  let built: string[]
  let password = ''
  let uri = ''
  /** Where the former primary was reached. */
  let former = ''
  let rows = ''

  const program = (file: string, words: string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> =>
    new Promise((resolve) => {
      const { FLOE_LOG: _, FLOE_STARTED: __, FLOE_CHECKOUT: ___, ...own } = process.env
      execFile(
        file,
        words,
        { env: { ...own, ...env }, maxBuffer: 1 << 26, timeout: BOUND_MS },
        (error, stdout, stderr) => {
          const status = typeof error?.code === 'number' ? error.code : error ? 128 : 0
          resolve({ status, stdout, stderr })
        },
      )
    })
  const onConsole = (file: string, words: string[], env?: NodeJS.ProcessEnv) => {
    const [first, ...more] = [...console.command, file, ...words]
    return program(first as string, more, env)
  }
  const floe = (...words: string[]) => onConsole(join(checkout, 'floe'), words, { FLOE_HOME: console.home })
  async function answer(...words: string[]): Promise<string> {
    const { status, stdout, stderr } = await floe(...words)
    if (status !== 0) throw new Error(`floe ${words.join(' ')} ended with ${status}\n${stdout}\n${stderr}`)
    return stdout
  }
  const floeJson = async <T>(...words: string[]) => JSON.parse(await answer(...words, '--json')) as T
  /** A client's program of the engine, beside the console. */
  async function client(name: string, words: string[], to = uri): Promise<string> {
    const prefix = process.env.FLOE_TEST_ENGINE_PREFIX ?? ''
    const ended = await onConsole(join(prefix, 'bin', name), [...words, to], { PGPASSWORD: password })
    if (ended.status !== 0) throw new Error(`${name} ended with ${ended.status}\n${ended.stderr}`)
    return ended.stdout.trim()
  }
  const sql = (statement: string, to = uri) => client('psql', ['-XAtqc', statement], to)
  const counted = () =>
    sql(`SELECT count(*) || ' ' || sum(delta) || ' ' || (SELECT sum(abalance) FROM pgbench_accounts)
      FROM pgbench_history`)

  /** Switches it on; one that a test before left running is switched off. */
  const start = async () => {
    await machine?.powerOff()
    machine = new RunningGuest({
      memoryMegabytes: 2_048,
      append: 'root=/dev/nvme0n1 rw',
      arguments: ['-fw_cfg', `name=opt/floe.enrolment-token,file=${join(room, 'token')}`],
      disks: ['root', 'one', 'two'].map((serial) => ({ serial, path: join(room, serial) })),
      boundMs: 60 * MINUTE_MS,
      command: port.command,
      tap: port.tap,
      shell: join(room, 'shell'),
    })
    await machine.answers(BOUND_MS)
  }
  /** Runs a script in it, and answers how that ended and what it said. */
  const inside = (script: string) => {
    if (!machine) throw new Error('there is no guest')
    return machine.run(script)
  }
  const reachable = () =>
    waitUntil(
      'the console reaches the agent',
      async () => {
        const hosts = await floeJson<{ name: string; state: string }[]>('host', 'list')
        return hosts.find(({ name }) => name === 'db1')?.state === 'online'
      },
      BOUND_MS,
      3_000,
    ).catch(async (error: unknown) => {
      const told = await inside('journalctl --boot --no-pager --lines 60 --output cat; systemctl --failed')
      throw new Error(`${String(error)}\n${told.said}`)
    })
  const shown = () =>
    floeJson<{
      cluster: { members: { name: string; fenced: object | null }[] }
      openOperation: object | null
    }>(...['cluster', 'show', 'shop'])
  const running = (name: string) =>
    waitUntil(
      `"${name}" runs`,
      async () => (await floeJson<{ state: string }>('instance', 'show', name)).state === 'running',
      BOUND_MS,
      3_000,
    )

  /** What the module makes of these, by Terraform. */
  function userData(authority: string, sha256: string): string {
    const root = join(room, 'terraform')
    // Terraform takes a module elsewhere for a package, which may not name what is beside it
    cpSync(join(checkout, 'infra/modules'), join(root, 'modules'), { recursive: true })
    writeFileSync(
      join(root, 'main.tf'),
      `module "user_data" {
        source        = "./modules/host_user_data"
        host_name     = "db1"
        archive       = { url = "https://${console.address}:9443/floe.tar.gz", sha256 = "${sha256}" }
        console       = { url = "http://${console.address}:3000", authority = "${authority}" }
        layout        = "raid0"
        disk_model    = "QEMU NVMe Ctrl"
        token_program = file("modules/nvme_host_libvirt/token-from-qemu")
      }
      output "user_data" { value = module.user_data.user_data }`,
    )
    const env = { ...process.env, TF_CLI_CONFIG_FILE: '/dev/null', CHECKPOINT_DISABLE: '1' }
    const run = (...words: string[]) => execFileSync(terraform, words, { cwd: root, env, encoding: 'utf8' })
    run('init', '-input=false')
    run('apply', '-input=false', '-auto-approve')
    return run('output', '-raw', 'user_data')
  }

  beforeAll(async () => {
    room = mkdtempSync(join(tmpdir(), 'floe-guest-host-'))
    const packages = join(room, 'packages')
    const packed = await program(join(checkout, 'floe'), ['engine', 'package', '--output', packages])
    expect([packed.status, packed.stderr]).toEqual([0, expect.anything()])
    built = packed.stdout.trim().split('\n')
    const files = join(room, 'files')
    mkdirSync(files)
    execFileSync('tar', ['-czf', join(files, 'floe.tar.gz'), '-C', room, 'packages'])
    const sha256 = createHash('sha256')
      .update(readFileSync(join(files, 'floe.tar.gz')))
      .digest('hex')

    net = new HostsInNamespaces()
    console = net.add('console')
    port = net.addMachine()
    const { address } = console
    await floeJson('up', '--listen', address, '--host-address', address)
    const added = await floeJson<{ token: string; authority: string }>(
      'host',
      'add',
      'db1',
      '--minutes',
      '120',
    )
    writeFileSync(join(room, 'token'), `${added.token}\n`, { mode: 0o600 })
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', `/CN=${address}`],
        ...['-addext', `subjectAltName=IP:${address}`],
        ...['-keyout', join(room, 'key'), '-out', join(room, 'certificate')],
      ],
      { stdio: 'ignore' },
    )
    console.start(
      ['openssl', 's_server', '-accept', '9443', '-WWW', '-quiet'].concat([
        ...['-cert', join(room, 'certificate'), '-key', join(room, 'key')],
      ]),
      { cwd: files, stdio: 'ignore' },
    )
    writeFileSync(join(room, 'user-data'), userData(`sha256:${added.authority}`, sha256))
    execFileSync(
      join(import.meta.dirname, 'guest/build-host'),
      [guest, join(room, 'user-data'), join(room, 'certificate'), `${port.address}/24`, join(room, 'root')],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    )
    for (const disk of ['one', 'two']) emptyDisk(join(room, disk), 10_240)
  }, 20 * MINUTE_MS)
  afterAll(async () => {
    await machine?.powerOff()
    net?.remove()
    if (room) rmSync(room, { recursive: true, force: true })
  }, MINUTE_MS)

  test(
    'its first start installs Floe, enrols it, and makes one file system of its two disks',
    async () => {
      await start()
      await reachable()
      await waitUntil(
        'the unit of the agent counts as started',
        async () => (await inside('systemctl is-active floe-agent.service')).said === 'active',
        BOUND_MS,
        1_000,
      )
      const { said } = await inside(`cloud-init schema --config-file /var/lib/cloud/seed/nocloud/user-data
        cloud-init status --wait; uname -n
        grep ' /var/lib/floe ' /proc/self/mountinfo; cat /proc/mdstat
        systemctl is-enabled floe-agent.service floe-host.service
        journalctl --boot --unit floe-host.service --unit floe-agent.service --output cat
        systemctl --failed --plain --no-legend`)
      expect(said).toMatch(/^Valid cloud-config: /m)
      expect(said).toMatch(/^status: done\ndb1$/m)
      expect(said).toMatch(/ \/var\/lib\/floe \S*noatime.* - xfs /)
      expect(said).toMatch(/ active raid0 nvme\dn1\[\d\] nvme\dn1\[\d\]$/m)
      expect(said).toMatch(/^passed over: \/dev\/nvme0n1 .*serial root\)/m)
      expect(said).toMatch(/^enabled\nenabled$/m)
      // its packages start nothing
      const [before, after] = said.split('Host "db1" is enrolled')
      expect(before).not.toMatch(/^Start\w+ floe-agent\.service/m)
      expect(after).toMatch(/^Finished floe-agent\.service/m)
      expect(said).not.toContain('.service loaded failed')
    },
    3 * BOUND_MS,
  )

  test(
    'an instance is created on it and takes a load',
    async () => {
      const made = await floeJson<{ password: string; connectionString: string }>(
        ...['instance', 'create', 'shop', '--host', 'db1'],
      )
      password = made.password
      uri = made.connectionString
      await client('pgbench', ['-qi', '-s', '1'])
      const said = await client('pgbench', ['-n', '-c', '2', '-t', '100'])
      expect(said).toContain('number of failed transactions: 0 ')
      rows = await counted()
      expect(rows).toMatch(/^200 (-?\d+) \1$/)
    },
    3 * BOUND_MS,
  )

  test(
    'the host check finds everything as wanted, but for the emulated clock',
    async () => {
      const { status, stdout } = await floe('host', 'check', 'db1')
      expect([status, stdout]).toEqual([0, expect.stringMatching(/^\d+ to improve, \d+ as wanted$/m)])
      // an emulated processor has no clock that keeps time
      expect([...stdout.matchAll(/^(\w+) {2}([^:]*):/gm)].map(([, ...what]) => what)).toEqual([
        ['advice', 'clocksource'],
      ])
    },
    BOUND_MS,
  )

  test(
    'after a restart its disks are one again, and its instance is started by the agent alone, with its rows',
    async () => {
      await machine?.restarts(BOUND_MS)
      await start()
      await reachable()
      await running('shop')
      expect(await counted()).toBe(rows)
      const { said } = await inside(`cat /proc/mdstat; grep ' /var/lib/floe ' /proc/self/mountinfo
        systemctl show 'floe-instance@*' --property ActiveState,UnitFileState,Restart
        systemctl --failed --plain --no-legend`)
      expect(said).toMatch(/ active raid0 nvme\dn1\[\d\] nvme\dn1\[\d\]$/m)
      expect(said).toMatch(/ \/var\/lib\/floe \S*noatime.* - xfs /)
      for (const line of ['Restart=no', 'ActiveState=active', 'UnitFileState=static'])
        expect(said.split('\n')).toContain(line)
      expect(said).not.toContain('.service loaded failed')
    },
    3 * BOUND_MS,
  )

  test(
    'packages are brought from the console to its dpkg, once root has allowed it, and its instance is moved onto them',
    async () => {
      const later = join(room, 'later')
      laterPackages(built, later)
      const upgrade = ['host', 'upgrade', 'db1', '--packages', later]
      expect(await floe(...upgrade, '--confirm', 'db1')).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('/etc/floe/accept-packages'),
      })
      await inside('install -D -m 644 /dev/null /etc/floe/accept-packages')
      await waitUntil(
        'the console knows that it takes packages',
        async () => (await answer(...upgrade)).startsWith('Packages of host'),
        BOUND_MS,
        1_000,
      )
      await answer(...upgrade, '--confirm', 'db1')
      await reachable()
      // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own
      const show = "dpkg-query --show --showformat='${Package} ${Version} ${db:Status-Status}\n' 'floe-*'"
      const { said } = await inside(`${show}; dpkg --audit; systemctl is-active floe-agent.service
        ls -l /proc/$(systemctl show 'floe-instance@*' --value --property MainPID)/exe`)
      const version = field(built[2] as string, 'Version')
      expect(said).toContain(`floe-agent ${version}.1 installed\n`)
      expect(said).toMatch(/^floe-engine-\S+next \S+\.1 installed$/m)
      expect(said).toMatch(/^active$/m)
      expect(said).toMatch(/ -> \/usr\/lib\/floe\/engine\/\S+next\/bin\/postgres$/m)
      expect(await answer('host', 'show', 'db1')).toContain(`${version}.1`)
      expect(await counted()).toBe(rows)
    },
    3 * BOUND_MS,
  )

  test(
    'while it is off its standby takes over, and nothing that was acknowledged is lost',
    async () => {
      const own = (await floeJson<{ name: string }[]>('host', 'list')).find(({ name }) => name !== 'db1')
      await floeJson('standby', 'create', 'shop', 'shop-2', '--host', own?.name ?? '')
      // commits of the new primary must not wait for the former one: not --strict
      await floeJson('cluster', 'synchronous', 'shop', 'shop-2', '--first', '1', '--mode', 'on')
      const said = await client('pgbench', ['-n', '-c', '2', '-t', '100'])
      expect(said).toContain('number of failed transactions: 0 ')
      rows = await counted()
      expect(rows).toMatch(/^400 (-?\d+) \1$/)
      await machine?.powerOff()
      await waitUntil(
        'the console misses the host',
        async () => {
          const hosts = await floeJson<{ name: string; state: string }[]>('host', 'list')
          return hosts.find(({ name }) => name === 'db1')?.state !== 'online'
        },
        BOUND_MS,
        1_000,
      )
      const failover = ['cluster', 'failover', 'shop', '--to', 'shop-2', '--unreachable-host', 'db1']
      const outcome = await answer(...failover)
      expect(outcome).toMatch(/^"shop-2" holds every commit that /m)
      expect(outcome).toContain('The former primary is not fenced: its host is unreachable.')
      former = uri
      uri = (await floeJson<{ connectionString: string }>('instance', 'show', 'shop-2')).connectionString
      expect(await counted()).toBe(rows)
      await sql('CREATE TABLE after_the_failover ()')
    },
    3 * BOUND_MS,
  )

  test(
    'when it is back the former primary is fenced and stays down, also for a start by hand',
    async () => {
      await start()
      await reachable()
      await waitUntil(
        'the former primary is fenced',
        async () => {
          const { cluster, openOperation } = await shown()
          return openOperation === null && cluster.members.find(({ name }) => name === 'shop')?.fenced
        },
        BOUND_MS,
        3_000,
      )
      expect(await floe('instance', 'start', 'shop')).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('fenced'),
      })
      const { instanceId } = await floeJson<{ instanceId: string }>('instance', 'show', 'shop')
      const unit = `floe-instance@${instanceId}.service`
      const { said } = await inside(`systemctl start ${unit}; echo "ended with $?"
        systemctl show ${unit} --property ActiveState,UnitFileState; pgrep --count --exact postgres`)
      expect(said).toMatch(/^ended with [1-9]\d*$/m)
      for (const line of ['ActiveState=inactive', 'UnitFileState=static', '0'])
        expect(said.split('\n')).toContain(line)
      await expect(sql('SELECT 1', former)).rejects.toThrow('psql ended with 2')
    },
    3 * BOUND_MS,
  )

  test(
    'rejoined, it follows the new primary',
    async () => {
      await floeJson('standby', 'rejoin', 'shop')
      await running('shop')
      expect(await sql('SELECT pg_is_in_recovery()', former)).toBe('t')
      expect(await sql("SELECT to_regclass('after_the_failover') IS NOT NULL", former)).toBe('t')
      expect(await counted()).toBe(rows)
    },
    3 * BOUND_MS,
  )

  test(
    'the agent’s removal leaves its instance running',
    async () => {
      const postmaster = 'systemctl show floe-instance@* --value --property MainPID'
      const before = await inside(postmaster)
      expect(before.said).toMatch(/^[1-9]\d*$/)
      expect(await inside('dpkg --remove floe-agent')).toMatchObject({ status: 0 })
      expect((await inside('systemctl is-active floe-agent.service')).said).toBe('inactive')
      expect(await inside(postmaster)).toEqual(before)
      expect(await sql('SELECT pg_is_in_recovery()', former)).toBe('t')
    },
    BOUND_MS,
  )
})
