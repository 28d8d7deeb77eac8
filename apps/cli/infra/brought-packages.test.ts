import { execFileSync } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type HostPackage, InstanceId, PACKAGE_PIECE_BYTES } from '@floe/domain'
import {
  callAgent,
  makeThrowawayHome,
  PrivateSystemd,
  type TaskInput,
  type TaskStatus,
  type ThrowawayHome,
  waitUntil,
} from '@floe/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { builtPackages } from './built-packages'

const why = PrivateSystemd.reasonAgainst()
/** dpkg unpacks Node and an engine, on a machine that may be busy. */
const INSTALL_MS = 180_000

const field = (deb: string, name: string) =>
  execFileSync('dpkg-deb', ['--field', deb, name], { encoding: 'utf8' }).trim()
const packageOf = (deb: string): HostPackage => ({
  name: field(deb, 'Package'),
  version: field(deb, 'Version'),
  architecture: field(deb, 'Architecture'),
  distribution: field(deb, 'Floe-Distribution'),
  sizeBytes: statSync(deb).size,
  digest: createHash('sha256').update(readFileSync(deb)).digest('hex'),
})

/** A host that was made from packages, in a copy of this machine with a systemd of its own, and what its controller asks of it. */
describe.skipIf(why !== null)(`packages that a console brings to a host${why ? ` (${why})` : ''}`, () => {
  let home: ThrowawayHome
  let systemd: PrivateSystemd
  let directory: string
  let built: string[]
  /** The agent's package without its Node, which is nearly all of it: for what is never installed. */
  let bare: string

  const run = (...command: string[]) => systemd.run(...command)
  const shell = (script: string) => run('sh', '-c', script)
  const client = <T>(ask: Parameters<typeof callAgent<T>>[1]) => callAgent(home, ask)
  const answers = () =>
    waitUntil('the agent answers', () => client((trpc) => trpc.hello.query()).catch(() => null), 60_000)
  const report = () => client((trpc) => trpc.report.read.query({ after: null }))
  const packages = () => join(home.home, 'agent/packages')

  /** One task to its end, through whatever restarts of the agent. */
  async function task(upgradeId: string, step: string, asked: TaskInput): Promise<TaskStatus> {
    const key = { operationId: upgradeId, step, attempt: 1 }
    await client((trpc) => trpc.task.start.mutate({ key, task: asked }))
    return waitUntil(
      `task ${asked.kind} ends`,
      async () => {
        const status = await client((trpc) => trpc.task.check.query({ key })).catch(() => null)
        return status !== null && status.endedAt !== null ? status : null
      },
      INSTALL_MS,
    )
  }

  async function receive(upgradeId: string, deb: string, asked = packageOf(deb)): Promise<TaskStatus> {
    const bytes = readFileSync(deb)
    let status: TaskStatus | undefined
    for (let offset = 0; offset < bytes.length; offset += PACKAGE_PIECE_BYTES) {
      status = await task(upgradeId, `receive.${randomUUID()}`, {
        kind: 'receive-package',
        instanceId: InstanceId.parse(upgradeId),
        ...{ digest: asked.digest, sizeBytes: asked.sizeBytes, offset },
        data: bytes.subarray(offset, offset + PACKAGE_PIECE_BYTES).toString('base64'),
      })
      if (status.state !== 'succeeded') return status
    }
    return status as TaskStatus
  }

  const install = (upgradeId: string, asked: readonly HostPackage[], downgrade = false) =>
    task(upgradeId, 'install', {
      kind: 'install-packages',
      instanceId: InstanceId.parse(upgradeId),
      packages: [...asked],
      downgrade,
    })

  async function bring(debs: readonly string[], downgrade = false): Promise<TaskStatus> {
    const upgradeId = randomUUID()
    for (const deb of debs) expect((await receive(upgradeId, deb)).fault).toBeNull()
    return install(
      upgradeId,
      debs.map((deb) => packageOf(deb)),
      downgrade,
    )
  }

  const installed = async () =>
    // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own
    (await shell("dpkg-query --show --showformat='${Package} ${Version} ${db:Status-Status}\\n' 'floe-*'"))
      .split('\n')
      .filter((line) => / (installed|half-|unpacked|triggers)/.test(line))

  /** Packs a package anew as another version of it would be. */
  function packed(
    deb: string,
    name: string,
    change: (tree: string, control: string) => string,
    as: string | false = '.1',
  ): string {
    const tree = join(directory, 'tree')
    execFileSync('dpkg-deb', ['--raw-extract', deb, tree])
    const control = join(tree, 'DEBIAN/control')
    const text = change(tree, readFileSync(control, 'utf8'))
    writeFileSync(control, as === false ? text : text.replace(/^(Version: .*)$/m, `$1${as}`))
    const file = join(directory, `${name}.deb`)
    execFileSync('dpkg-deb', ['-Zzstd', '-z1', '--root-owner-group', '--build', tree, file], {
      stdio: 'ignore',
    })
    rmSync(tree, { recursive: true })
    return file
  }
  const agentAs = (name: string, as: string, script?: string) =>
    laterAgent(built[2] as string, name, as, script)
  const laterAgent = (deb: string, name: string, as: string, script?: string) =>
    packed(
      deb,
      name,
      (tree, control) => {
        const file = join(tree, 'usr/lib/floe/floe-package.json')
        writeFileSync(file, readFileSync(file, 'utf8').replace(/"\s*}/, `${as}" }`))
        const postinst = join(tree, 'DEBIAN/postinst')
        if (script)
          writeFileSync(postinst, readFileSync(postinst, 'utf8').replace('set -e\n', `set -e\n${script}\n`))
        return control
      },
      as,
    )
  /** The same engine as another build, with what asks for it. */
  const engineAs = (build: string): string[] => {
    const own = field(built[0] as string, 'Package')
    const key = own.replace('floe-engine-', '')
    return [
      packed(built[0] as string, `engine-${build}`, (tree, control) => {
        renameSync(join(tree, 'usr/lib/floe/engine', key), join(tree, 'usr/lib/floe/engine', build))
        renameSync(join(tree, 'usr/share/doc', own), join(tree, 'usr/share/doc', `floe-engine-${build}`))
        return control.replaceAll(key, build)
      }),
      packed(built[1] as string, `newest-${build}`, (tree, control) => {
        execFileSync('ln', ['-sfn', build, join(tree, 'usr/lib/floe/engine/current')])
        return control.replaceAll(`Depends: ${own}`, `Depends: floe-engine-${build}`)
      }),
    ]
  }

  beforeAll(async () => {
    home = await makeThrowawayHome({ enginePrefix: '/usr/lib/floe/engine/current' })
    directory = join(dirname(home.home), 'packages')
    mkdirSync(directory)
    // where its host sees them
    built = builtPackages(inject('packagesDirectory')).map((file) => {
      const here = join(directory, basename(file))
      copyFileSync(file, here)
      return here
    })
    bare = packed(
      built[2] as string,
      'bare',
      (tree, control) => {
        rmSync(join(tree, 'usr/lib/floe/node'), { recursive: true })
        return control
      },
      false,
    )
    const { installation } = home
    const { version, installationId, hostId, hostName, hostAddress, agentPort, instancePorts } = installation
    writeFileSync(
      join(home.home, 'config.json'),
      JSON.stringify({
        ...{ version, installationId, hostId, hostName, hostAddress, agentPort, instancePorts },
        enginePrefix: `/usr/lib/floe/engine/${field(built[0] as string, 'Package').slice(12)}`,
        ...{ instancesDirectory: '/var/lib/floe/i', socketDirectory: '/run/floe-test' },
        ...{ engineUser: installation.engineUser, bootUnit: 'floe-agent.service' },
      }),
    )
    systemd = await PrivateSystemd.start(dirname(home.home))
    const made = await shell(`exec 2>&1; set -e
      mkdir -p /var/lib/floe-agent; mount --bind ${home.home} /var/lib/floe-agent
      rm -rf /var/lib/floe; mkdir -p /var/lib/floe/i
      # else each agent that starts searches the whole machine for files of users of instances, of which there are none
      mkdir /var/lib/floe/users; echo 59900 >/var/lib/floe/users/next
      dpkg --install ${built.join(' ')}
      for unit in floe-agent.service floe-instance@.service floe.slice; do
        ln -s /usr/lib/systemd/system/$unit /etc/systemd/system/$unit
      done
      mkdir -p /etc/systemd/system/multi-user.target.wants
      ln -s /usr/lib/systemd/system/floe-agent.service /etc/systemd/system/multi-user.target.wants/
      systemctl daemon-reload
      systemctl start floe-agent.service; echo "started with $?"`)
    expect(made).toContain('started with 0')
    await answers()
  }, 600_000)
  afterAll(async () => {
    await systemd?.end()
    home?.remove()
  })

  test('the agent reports what dpkg has installed, and its own build', async () => {
    const { facts } = await report()
    expect(facts.packages?.installed.map(({ name, version }) => [name, version]).sort()).toEqual(
      built.map((deb) => [field(deb, 'Package'), field(deb, 'Version')]).sort(),
    )
    expect(facts.packages?.installed[0]?.name).toBe('floe-agent')
    expect(facts.packages?.architecture).toBe(packageOf(built[2] as string).architecture)
    expect(facts.packages?.distribution).toBe(packageOf(built[2] as string).distribution)
    expect((await client((trpc) => trpc.hello.query())).agentVersion).toMatch(/^\d+\.\d+\.\d+\+[0-9a-f]{12}$/)
  })

  test('nothing is received before root has allowed it, by a file of its own', async () => {
    const deb = built[2] as string
    const accepted = async () => (await report()).facts.packages?.accepted
    expect(await accepted()).toBe(false)
    for (const made of [
      ':',
      'mkdir -p /etc/floe; touch /etc/floe/accept-packages; chown nobody /etc/floe/accept-packages',
      'chown root /etc/floe/accept-packages; chmod 666 /etc/floe/accept-packages',
      'rm /etc/floe/accept-packages; ln -s /etc/passwd /etc/floe/accept-packages',
    ]) {
      await shell(made)
      const { fault } = await receive(randomUUID(), deb)
      expect(fault, made).toMatchObject({ code: 'host.packages_not_accepted' })
      expect((await install(randomUUID(), [packageOf(deb)])).fault?.code).toBe('host.packages_not_accepted')
    }
    expect(existsSync(packages())).toBe(false)
    await shell('rm /etc/floe/accept-packages; install -D -m 644 /dev/null /etc/floe/accept-packages')
    await waitUntil('the report tells it', async () => (await accepted()) === true, 60_000)
  })

  test('a package that is cut off goes on where it ended, after the agent was killed', async () => {
    const deb = built[2] as string
    const asked = packageOf(deb)
    const piece = (offset: number, data = '') => ({
      kind: 'receive-package' as const,
      instanceId: InstanceId.parse(randomUUID()),
      ...{ digest: asked.digest, sizeBytes: asked.sizeBytes, offset, data },
    })
    const bytes = readFileSync(deb)
    const first = bytes.subarray(0, PACKAGE_PIECE_BYTES).toString('base64')
    await task(randomUUID(), 'one', piece(0, first))
    await shell('systemctl kill --signal=KILL floe-agent.service; systemctl start floe-agent.service')
    await answers()
    const at = async (asked: TaskInput) => (await task(randomUUID(), 'one', asked)).result?.receivedBytes
    expect(await at(piece(0))).toBe(PACKAGE_PIECE_BYTES)
    // what is sent twice, or leaves a gap, changes nothing
    expect(await at(piece(0, first))).toBe(PACKAGE_PIECE_BYTES)
    expect(await at(piece(3 * PACKAGE_PIECE_BYTES, first))).toBe(PACKAGE_PIECE_BYTES)
  })

  test('what is not what was ordered is refused before dpkg is asked', async () => {
    const before = await installed()
    const code = async (status: Promise<TaskStatus>) => (await status).fault?.code
    const other = laterAgent(bare, 'other', '.9')

    const wrong = { ...packageOf(other), digest: 'b'.repeat(64) }
    expect(await code(receive(randomUUID(), other, wrong))).toBe('package.other_digest')
    expect(await code(install(randomUUID(), [packageOf(other)]))).toBe('package.not_here')

    const named = async (deb: string, said: Partial<HostPackage> = {}, downgrade = false) => {
      const upgradeId = randomUUID()
      await receive(upgradeId, deb)
      return code(install(upgradeId, [{ ...packageOf(deb), ...said }], downgrade))
    }
    expect(await named(other, { version: '9.9' })).toBe('package.other')
    const stranger = packed(bare, 'stranger', (_, control) =>
      control.replace(/^Package: .*$/m, 'Package: sudo'),
    )
    expect(await named(stranger, { name: 'floe-agent' })).toBe('package.other')
    const ubuntu = packed(bare, 'ubuntu', (_, control) =>
      control.replace(/^Floe-Distribution: .*$/m, 'Floe-Distribution: ubuntu-99.04'),
    )
    expect(await named(ubuntu)).toBe('package.other_machine')
    const earlier = packed(
      bare,
      'earlier',
      (_, control) => control.replace(/^Version: .*$/m, 'Version: 0.0.1'),
      false,
    )
    expect(await named(earlier)).toBe('package.downgrade')
    const needy = packed(bare, 'needy', (_, control) =>
      control.replace(/^Depends: /m, 'Depends: floe-nothing (>= 2), '),
    )
    expect(await named(needy)).toBe('package.unmet')
    const text = join(directory, 'text.deb')
    writeFileSync(text, 'no package at all')
    const said = {
      ...packageOf(other),
      sizeBytes: 17,
      digest: createHash('sha256').update('no package at all').digest('hex'),
    }
    const upgradeId = randomUUID()
    await receive(upgradeId, text, said)
    expect(await code(install(upgradeId, [said]))).toBe('package.unreadable')

    expect(await installed()).toEqual(before)
    expect(await shell(`test -e ${packages()} || echo nothing is left`)).toContain('nothing is left')
  })

  test('no other user plants a package, or changes one between the check and the installation', async () => {
    const deb = laterAgent(bare, 'planted', '.2')
    const upgradeId = randomUUID()
    await receive(upgradeId, deb)
    const file = `${packageOf(deb).digest}.deb`
    const tried =
      await shell(`cd /; for command in 'ls' 'cp /etc/hostname' ': >' 'ln -sf /etc/hostname' 'rm -f' 'mv -f /tmp/evil.deb'; do
        : >/tmp/evil.deb; chmod 666 /tmp/evil.deb
        setpriv --reuid nobody --regid nogroup --clear-groups sh -c "$command /var/lib/floe-agent/agent/packages/${file}" 2>/dev/null &&
          echo "did: $command"
      done; sha256sum </var/lib/floe-agent/agent/packages/${file}`)
    expect(tried).not.toContain('did:')
    expect(tried).toContain(packageOf(deb).digest)

    // had somebody been let in after all: what is not root's alone, or has another name, is not installed
    const before = await installed()
    const path = join(packages(), file)
    linkSync(path, join(directory, 'second-name.deb'))
    expect((await install(upgradeId, [packageOf(deb)])).fault?.code).toBe('package.not_own')
    rmSync(join(directory, 'second-name.deb'))
    const again = randomUUID()
    await receive(again, deb)
    await shell(`chmod 666 ${path}`)
    expect((await install(again, [packageOf(deb)])).fault?.code).toBe('package.not_own')
    const changed = randomUUID()
    await receive(changed, deb)
    copyFileSync(built[2] as string, path)
    expect((await install(changed, [packageOf(deb)])).fault?.code).toBe('package.other_digest')
    expect(await installed()).toEqual(before)
  })

  test('agent and engine are installed, and the task is ended by the agent that they brought', async () => {
    const { bootId } = await client((trpc) => trpc.hello.query())
    const debs = [...engineAs('18.9-later'), agentAs('later', '.3')]
    const status = await bring(debs)
    expect(status.fault).toBeNull()
    expect(status.result?.installed).toEqual(
      expect.arrayContaining(
        debs.map((deb) => ({
          name: field(deb, 'Package'),
          version: field(deb, 'Version'),
          status: 'installed',
        })),
      ),
    )
    expect((await client((trpc) => trpc.hello.query())).bootId).not.toBe(bootId)
    const { facts } = await report()
    expect(facts.engineBuild).toBe('18.9-later')
    expect(readdirSync(join(home.home, 'agent'))).not.toContain('packages')
    // asked once more, the task answers what it did
    expect(await bring(debs)).toMatchObject({ state: 'succeeded' })
  })

  test('an agent that is killed while dpkg works finds out what came of it', async () => {
    const deb = agentAs('killed', '.4', 'sleep 2')
    const upgradeId = randomUUID()
    await receive(upgradeId, deb)
    const ending = install(upgradeId, [packageOf(deb)])
    await waitUntil(
      'dpkg has begun',
      () => readdirSync(packages()).some((name) => name.endsWith('.log')),
      30_000,
    )
    await shell('systemctl kill --signal=KILL floe-agent.service; systemctl start floe-agent.service')
    expect((await ending).fault).toBeNull()
    expect(await installed()).toContain(`floe-agent ${field(deb, 'Version')} installed`)
  })

  test('dpkg that is killed leaves a package that is named, with the command that mends it', async () => {
    const deb = agentAs('half', '.5', 'if [ ! -e /run/go-on ]; then : >/run/waits; sleep 600; fi')
    const upgradeId = randomUUID()
    await receive(upgradeId, deb)
    const ending = install(upgradeId, [packageOf(deb)])
    await waitUntil(
      'its script runs',
      async () => (await shell('test ! -e /run/waits || echo it runs')).includes('it runs'),
      60_000,
    )
    await shell(`systemctl kill --signal=KILL floe-packages-${upgradeId}.service; : >/run/go-on`)
    expect((await ending).fault).toMatchObject({
      code: 'package.half_configured',
      message: 'dpkg left "floe-agent" unconfigured',
      hint: 'Run as root on the host: dpkg --configure -a',
    })
    // and the command does
    await shell('dpkg --configure -a')
    expect(await installed()).toContain(`floe-agent ${field(deb, 'Version')} installed`)
    await answers()
  })

  test('an earlier version is installed where that was asked for', async () => {
    const status = await bring([built[2] as string], true)
    expect(status.fault).toBeNull()
    expect(await installed()).toContain(`floe-agent ${field(built[2] as string, 'Version')} installed`)
  })
})
