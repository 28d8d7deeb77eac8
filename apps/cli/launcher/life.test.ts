import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { alive, endAtOnce, freePorts, launcher, PrivateHome, until } from './private-home'

type Up = { url: string; setupUrl: string | null; enginePrefix: string; instancesDirectory: string }
type Created = {
  instanceId: string
  state: string
  port: number
  connectionString: string
  password: string
  directory: string
}

const home = new PrivateHome()
let base: number
let first: Up

beforeAll(async () => {
  base = await freePorts(24)
  // an earlier run that was killed at a bad moment: a pid that is somebody else's, a database half made, a secret missing
  mkdirSync(join(home.directory, 'run'), { recursive: true })
  mkdirSync(join(home.directory, 'secrets'), { recursive: true, mode: 0o700 })
  mkdirSync(join(home.directory, 'instances/control/pgdata.new'), { recursive: true })
  writeFileSync(join(home.directory, 'instances/control/pgdata.new/PG_VERSION'), '18\n')
  writeFileSync(
    join(home.directory, 'run/web.json'),
    JSON.stringify({ pid: process.pid, startTicks: 1, bootId: 'x', startedAt: 1, mark: '' }),
  )
  writeFileSync(join(home.directory, 'secrets/auth-secret'), 'kept-from-the-earlier-run\n')
  first = await home.json<Up>('up', '--port', String(base), '--instance-ports', `${base + 3}-${base + 23}`)
})
afterAll(() => home.remove())

/** One statement through psql of the engine, by a connection string. */
function sql(connectionString: string, statement: string): string {
  return execFileSync(join(first.enginePrefix, 'bin/psql'), ['-XAtq', '-c', statement, connectionString], {
    encoding: 'utf8',
  }).trim()
}

describe('up', () => {
  test('completes a half-finished run and ends with a console that answers and a set-up link that works', async () => {
    expect(first.url).toBe(`http://127.0.0.1:${base}`)
    expect(first.setupUrl).toMatch(new RegExp(`^${first.url}/setup/[\\w-]{20,}$`))
    expect((await fetch(`${first.url}/healthz`)).status).toBe(200)
    expect(await (await fetch(first.setupUrl as string)).text()).toContain('Create owner')
    expect(readFileSync(join(home.directory, 'secrets/auth-secret'), 'utf8')).toBe(
      'kept-from-the-earlier-run\n',
    )
    const { state, processes } = await home.status()
    expect(state).toBe('running')
    expect(processes.map((p) => [p.name, p.state])).toEqual([
      ['supervisor', 'running'],
      ['control-database', 'running'],
      ['agent', 'running'],
      ['controller', 'running'],
      ['web', 'running'],
    ])
  })

  test('a second run takes at most 10 s, prints the same address and restarts nothing', async () => {
    const before = (await home.status()).processes.map((p) => p.pid)
    const again = await home.run(['up', '--json'])
    expect(again.seconds).toBeLessThanOrEqual(10)
    expect(JSON.parse(again.stdout)).toMatchObject({ url: first.url })
    expect((await home.status()).processes.map((p) => p.pid)).toEqual(before)
  })

  test('two runs at once do not meet', async () => {
    const both = await Promise.all([home.run(['up', '--json']), home.run(['up', '--json'])])
    expect(both.map((run) => run.status)).toEqual([0, 0])
    expect((await home.status()).state).toBe('running')
  })

  test('works from any directory and through a symbolic link', async () => {
    const link = join(home.directory, 'link-to-floe')
    symlinkSync(launcher, link)
    const { stdout, status } = await home.run(['status', '--json'], { file: link, cwd: '/usr' })
    expect(status).toBe(0)
    expect(JSON.parse(stdout).url).toBe(first.url)
  })

  test('secrets are for their owner alone, and no process shows one in its arguments', () => {
    const secrets = readdirSync(join(home.directory, 'secrets'))
      .filter((file) => !file.endsWith('.pem') && !file.startsWith('ca.'))
      .map((file) => readFileSync(join(home.directory, 'secrets', file), 'utf8').trim())
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      let command = ''
      try {
        command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      } catch {
        continue
      }
      for (const secret of secrets) expect(command).not.toContain(secret)
    }
  })

  test('the one-time token of a host stands in no process’s arguments while the host is prepared', async () => {
    const other = new PrivateHome()
    const token = `floe-${randomBytes(32).toString('base64url')}`
    let asked = false
    const console = createServer((socket) => {
      socket.on('error', () => {})
      // never answered: the command is still there while it is looked for
      socket.on('data', () => {
        asked = true
      })
    })
    const sockets = new Set<Socket>()
    console.on('connection', (socket) => sockets.add(socket))
    await new Promise<void>((resolve) => console.listen(0, '127.0.0.1', resolve))
    const at = await freePorts(4)
    try {
      const ended = other.run([
        ...['agent', 'enrol', '--token', token, '--authority', `sha256:${'a'.repeat(64)}`],
        ...['--console', `http://127.0.0.1:${(console.address() as AddressInfo).port}`],
        ...['--listen', `127.0.0.1:${at}`, '--instance-ports', `${at + 1}-${at + 3}`],
      ])
      await until('the console is asked', () => asked)
      const seen = readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .filter((pid) => {
          try {
            return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(token)
          } catch {
            return false
          }
        })
      expect(seen).toEqual([])
      for (const socket of sockets) socket.destroy()
      const { status, stderr } = await ended
      expect(status).toBe(1)
      expect(stderr).toContain('"--token -" reads it from standard input')
    } finally {
      console.close()
      rmSync(other.directory, { recursive: true, force: true })
    }
  })

  test('names the process that holds its port, and leaves the other installation alone', async () => {
    const other = new PrivateHome()
    try {
      const { status, stderr, stdout } = await other.run(['up', '--port', String(base), '--json'])
      expect(status).toBe(1)
      expect(JSON.parse(stdout).fault.code).toBe('installation.port_in_use')
      expect(stderr).toMatch(new RegExp(`port ${base} of web is in use`))
      expect(stderr).toMatch(/pid \d+/)
    } finally {
      rmSync(other.directory, { recursive: true, force: true })
    }
    expect((await home.status()).state).toBe('running')
  })
})

const root = process.getuid?.() === 0

describe.runIf(root)('boundaries between the users of an installation', () => {
  type Config = {
    users: { controlDatabase: string; web: string; controller: string; group: string }
    consoleDirectory: string
    instancesDirectory: string
    webSocket: string
    controlDatabase: { name: string; socketDirectory: string; port: number }
  }
  let config: Config
  beforeAll(() => {
    config = JSON.parse(readFileSync(join(home.directory, 'config.json'), 'utf8')) as Config
  })
  /** Runs a command as a user of this machine; answers its exit status and what it said. */
  const as = (user: string, ...command: string[]) => {
    const { status, stdout, stderr } = spawnSync('runuser', ['-u', user, '--', ...command], {
      encoding: 'utf8',
      cwd: '/',
      timeout: 30_000,
    })
    return { status, said: stdout + stderr }
  }
  const connect = (user: string, role: string, statement = 'SELECT current_user') =>
    as(
      user,
      join(first.enginePrefix, 'bin/psql'),
      ...['-XAtqwc', statement, '-U', role, '-h', config.controlDatabase.socketDirectory],
      ...['-p', String(config.controlDatabase.port), config.controlDatabase.name],
    )

  test('control database, web and controller run as users of their own, with nothing of root left', async () => {
    const { processes, trustDomains } = await home.status()
    expect(trustDomains).toBe('separate')
    const userOf = Object.fromEntries(processes.map((p) => [p.name, p.user]))
    expect(userOf).toEqual({
      supervisor: 'root',
      'control-database': config.users.controlDatabase,
      agent: 'root',
      controller: config.users.controller,
      web: config.users.web,
    })
    for (const name of ['control-database', 'web', 'controller']) {
      const status = readFileSync(`/proc/${await home.pidOf(name)}/status`, 'utf8')
      expect(status).toMatch(/^NoNewPrivs:\t1$/m)
      for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
        expect(status).toMatch(new RegExp(`^${set}:\\t0+$`, 'm'))
      const uid = statSync(`/proc/${await home.pidOf(name)}`).uid
      expect(status).toMatch(new RegExp(`^Uid:\\t${uid}\\t${uid}\\t${uid}\\t${uid}$`, 'm'))
    }
  })

  test('nobody reads a secret that is not meant for him, nor changes one', () => {
    const secrets = [
      home.directory,
      join(config.consoleDirectory, 'web'),
      join(config.consoleDirectory, 'controller'),
    ].flatMap((of) => readdirSync(join(of, 'secrets')).map((name) => join(of, 'secrets', name)))
    expect(secrets.length).toBeGreaterThanOrEqual(11)
    const may = (user: string, access: string) =>
      secrets
        .filter((file) => as(user, 'test', access, file).status === 0)
        .map((file) => file.slice(config.consoleDirectory.length))
        .sort()
    expect(may('nobody', '-r')).toEqual([])
    expect(may(config.users.controlDatabase, '-r')).toEqual([])
    expect(may(config.users.web, '-r')).toEqual(
      ['auth-secret', 'ca.pem', 'web.pem'].map((name) => `/web/secrets/${name}`),
    )
    expect(may(config.users.web, '-w')).toEqual([])
    expect(may(config.users.controller, '-r')).toEqual([
      ...['auth-secret', 'ca.key', 'ca.pem', 'controller.pem'].map((name) => `/controller/secrets/${name}`),
      ...['auth-secret', 'ca.pem', 'web.pem'].map((name) => `/web/secrets/${name}`),
    ])
    expect(existsSync(join(home.directory, 'secrets/control-password'))).toBe(false)
  })

  test('each is the one role in the control database that it is mapped to, and nobody else gets in', () => {
    const inGroup = (user: string, role: string) =>
      spawnSync(
        'setpriv',
        [
          ...[`--reuid=${user}`, `--regid=${user}`, `--groups=${config.users.group}`, '--'],
          join(first.enginePrefix, 'bin/psql'),
          ...['-XAtqwc', 'SELECT current_user', '-U', role, '-h', config.controlDatabase.socketDirectory],
          ...['-p', String(config.controlDatabase.port), config.controlDatabase.name],
        ],
        { encoding: 'utf8', cwd: '/' },
      ).stdout.trim()
    expect(inGroup(config.users.web, 'floe_web')).toBe('floe_web')
    expect(inGroup(config.users.controller, 'floe_controller')).toBe('floe_controller')
    for (const [user, role] of [
      [config.users.web, 'floe'],
      [config.users.web, 'floe_controller'],
      [config.users.web, 'console'],
      [config.users.controller, 'floe'],
      [config.users.controller, 'floe_web'],
      ['nobody', 'floe_web'],
      ['nobody', 'floe'],
    ] as const)
      expect([user, role, inGroup(user, role)]).toEqual([user, role, ''])
    for (const user of ['nobody', 'floe']) {
      const { status, said } = connect(user, 'floe')
      expect(status).not.toBe(0)
      expect(said).toContain('Permission denied')
    }
  })

  test('the control database listens on no port, and keeps no password', () => {
    const sql = (statement: string) =>
      execFileSync(
        join(first.enginePrefix, 'bin/psql'),
        [
          ...['-XAtqwc', statement, '-U', 'floe', '-h', config.controlDatabase.socketDirectory],
          ...['-p', String(config.controlDatabase.port), config.controlDatabase.name],
        ],
        { encoding: 'utf8' },
      ).trim()
    expect(sql('SHOW listen_addresses')).toBe('')
    expect(sql('SELECT count(*) FROM pg_authid WHERE rolpassword IS NOT NULL')).toBe('0')
    expect(sql(`SELECT string_agg(rolname, ' ' ORDER BY rolname) FROM pg_roles WHERE rolcanlogin`)).toBe(
      'floe floe_controller floe_web',
    )
  })

  test('nobody else can take the places of its sockets, and the command line sends nothing to who has', async () => {
    for (const user of ['nobody', 'floe', config.users.web])
      for (const path of [
        join(config.controlDatabase.socketDirectory, 'planted'),
        join(config.controlDatabase.socketDirectory, '../planted'),
        ...(user === config.users.web ? [] : [join(config.webSocket, '../planted')]),
      ])
        expect([user, path, as(user, 'touch', path).status]).toEqual([user, path, 1])
    execFileSync('chown', ['nobody', join(config.webSocket, '..')])
    try {
      const { status, stdout } = await home.run(['instance', 'list', '--json'])
      expect([status, JSON.parse(stdout).fault.code]).toEqual([1, 'console.socket_not_trusted'])
    } finally {
      execFileSync('chown', [config.users.web, join(config.webSocket, '..')])
    }
    expect((await home.run(['instance', 'list'])).status).toBe(0)
  })

  test('a pipe in place of postmaster.pid holds nothing up', async () => {
    const file = join(config.instancesDirectory, 'control/pgdata/postmaster.pid')
    const text = readFileSync(file, 'utf8')
    rmSync(file)
    execFileSync('mkfifo', [file])
    try {
      const { seconds, status, stdout } = await home.run(['status', '--json'])
      expect(status).toBe(0)
      expect((JSON.parse(stdout) as { state: string }).state).toBe('running')
      expect(seconds).toBeLessThan(20)
    } finally {
      rmSync(file)
      writeFileSync(file, text, { mode: 0o600 })
      execFileSync('chown', [`${config.users.controlDatabase}:`, file])
    }
  })

  test('a process of another user that says it is web is not taken for it', async () => {
    const own = join(config.consoleDirectory, 'web')
    const pid = await home.pidOf('web')
    const fake = spawnSync('sh', [
      '-c',
      'setpriv --reuid=nobody --regid=nogroup --clear-groups -- env FLOE_HOME="$1" FLOE_PROCESS=web "$2" -e "setTimeout(() => {}, 60000)" >/dev/null 2>&1 & echo $!',
      'sh',
      own,
      process.execPath,
    ])
    const stranger = Number(String(fake.stdout).trim())
    try {
      await endAtOnce(await home.pidOf('supervisor'))
      rmSync(join(home.directory, 'run/web.json'))
      expect(await home.pidOf('web')).toBe(pid)
      await home.json('up')
    } finally {
      process.kill(stranger, 'SIGKILL')
    }
  })

  test('an installation of the earlier form is moved over, also when it is killed in the middle', async () => {
    const secret = (directory: string, name: string) => join(directory, 'secrets', name)
    const ofWeb = join(config.consoleDirectory, 'web')
    const ofController = join(config.consoleDirectory, 'controller')
    const own = [
      secret(ofController, 'ca.key'),
      secret(ofController, 'controller.pem'),
      secret(ofWeb, 'web.pem'),
      secret(ofWeb, 'auth-secret'),
      secret(home.directory, 'cli-token'),
    ]
    const texts = () => own.map((file) => readFileSync(file, 'utf8'))
    const before = texts()
    await home.json('down')

    // as an earlier version left it: one user, one directory of secrets, a port and a password
    for (const file of own.slice(0, 3)) renameSync(file, secret(home.directory, basename(file)))
    for (const directory of [
      ofWeb,
      ofController,
      config.controlDatabase.socketDirectory,
      dirname(config.webSocket),
    ])
      rmSync(directory, { recursive: true })
    writeFileSync(secret(home.directory, 'control-password'), 'a password', { mode: 0o600 })
    const pgdata = join(config.instancesDirectory, 'control/pgdata')
    writeFileSync(
      join(pgdata, 'pg_hba.conf'),
      'local all all peer\nhost all all 127.0.0.1/32 scram-sha-256\n',
    )
    writeFileSync(join(pgdata, 'pg_ident.conf'), '')
    execFileSync('chown', ['-R', 'floe:floe', pgdata])
    const { webSocket: _1, users: _2, consoleDirectory: _3, ...kept } = config
    writeFileSync(
      join(home.directory, 'config.json'),
      JSON.stringify({
        ...kept,
        controlPort: config.controlDatabase.port,
        controlDatabase: { user: 'console', name: 'console' },
      }),
    )

    const owners = () => [
      ...new Set(execFileSync('find', [pgdata, '-printf', '%u\n'], { encoding: 'utf8' }).trim().split('\n')),
    ]
    const moments = process.env.FLOE_TEST_LONG
      ? [700, 1_000, 1_300, 1_600, 1_900, 2_300, 2_700]
      : [1_000, 1_600, 2_300]
    for (const ms of moments) {
      const run = spawn(launcher, ['up'], { env: home.environment, stdio: 'ignore', detached: true })
      const ended = once(run, 'exit')
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, ms))])
      if (run.exitCode === null) process.kill(-(run.pid as number), 'SIGKILL')
      await ended
    }
    // half of it given
    await home.run(['down'])
    execFileSync('chown', ['-R', 'floe:floe', join(pgdata, 'base')])
    const { stdout } = spawnSync('id', ['-u', 'floe'], { encoding: 'utf8' })
    writeFileSync(join(config.instancesDirectory, 'control/former-owner'), stdout)

    await home.json('up')
    expect(owners()).toEqual([config.users.controlDatabase])
    expect(texts()).toEqual(before)
    expect(JSON.parse(readFileSync(join(home.directory, 'config.json'), 'utf8'))).toEqual(config)
    expect(readdirSync(join(home.directory, 'secrets')).sort()).toEqual([
      'agent.pem',
      'auth-secret',
      'ca.pem',
      'cli-token',
    ])
    expect((await home.status()).state).toBe('running')
    expect(await home.json('instance', 'list')).toEqual([])
  })
})

describe('the verbs', () => {
  let demo: Created

  test('create answers with a running instance, and psql connects by the printed string', async () => {
    const { stdout, status, stderr } = await home.run(['instance', 'create', 'demo', '--json'])
    expect(status, stderr).toBe(0)
    demo = JSON.parse(stdout) as Created
    expect(demo.state).toBe('running')
    expect(sql(demo.connectionString, 'SHOW polar_bulk_extend_size')).toBe('4MB')
    expect(demo.port).toBeGreaterThanOrEqual(base + 3)
  })

  test('every answer for programs is JSON, also of a failure', async () => {
    expect(await home.json<{ name: string }[]>('instance', 'list')).toMatchObject([
      { name: 'demo', state: 'running' },
    ])
    expect(await home.json('instance', 'show', 'demo')).toMatchObject({ instanceId: demo.instanceId })
    expect(await home.json<unknown[]>('host', 'list')).toHaveLength(1)
    const { status, stdout } = await home.run(['instance', 'show', 'nobody', '--json'])
    expect(status).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({ fault: { code: 'instance.not_found' } })
  })

  test('a setting is changed, confirmed by the instance, and stands in the history', async () => {
    const changed = await home.json<{ confirmed: unknown[] }>(
      'setting',
      'set',
      'demo',
      'polar_bulk_extend_size=1MB',
    )
    expect(changed.confirmed).toMatchObject([
      { name: 'polar_bulk_extend_size', oldValue: '4MB', newValue: '1MB' },
    ])
    expect(sql(demo.connectionString, 'SHOW polar_bulk_extend_size')).toBe('1MB')
    expect(await home.json('setting', 'history', 'demo')).toMatchObject([
      { name: 'polar_bulk_extend_size', newValue: '1MB' },
    ])
    expect(await home.json('setting', 'list', 'demo', 'polar_bulk_extend_size')).toMatchObject([
      { shown: '1MB' },
    ])
  })

  test('a value that is refused changes nothing and is exit status 1', async () => {
    const { status, stderr } = await home.run(['setting', 'set', 'demo', 'polar_bulk_extend_size=1TB'])
    expect(status).toBe(1)
    expect(stderr).toContain('polar_bulk_extend_size')
    expect(sql(demo.connectionString, 'SHOW polar_bulk_extend_size')).toBe('1MB')
  })

  test('telemetry comes one sample a line, numbered without a hole', async () => {
    const { stdout, status } = await home.run(['telemetry', 'tail', 'demo', '--seconds', '4', '--json'])
    expect(status).toBe(0)
    const samples = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { seq: number; values: Record<string, number> })
    expect(samples.length).toBeGreaterThanOrEqual(3)
    expect(samples.map((s) => s.seq)).toEqual(samples.map((_, i) => (samples[0]?.seq as number) + i))
    expect(samples.every((s) => typeof s.values.tps === 'number')).toBe(true)
  })

  test.each([
    ['an unknown verb', ['bogus']],
    ['an unknown option', ['status', '--bogus']],
    ['a port out of range', ['up', '--port', '70000']],
    ['a name with capitals', ['instance', 'create', 'Demo']],
    ['a missing confirmation', ['instance', 'delete', 'demo']],
    ['a setting without a value', ['setting', 'set', 'demo', 'work_mem']],
    ['an unknown suite', ['test', 'bogus']],
    ['an unknown benchmark', ['bench', 'bogus']],
    ['an unknown verb of the engine', ['engine', 'bogus']],
    ['an operation id that is none', ['operation', 'show', '1']],
  ])('%s is exit status 2', async (_, args) => {
    expect((await home.run(args)).status).toBe(2)
  })

  test.each([
    [['--help']],
    [['up', '--help']],
    [['instance', '--help']],
    [['instance', 'create', '--help']],
    [['engine', '--help']],
    [['telemetry', 'tail', '--help']],
  ])('%j explains itself', async (args) => {
    const { status, stdout } = await home.run(args)
    expect(status).toBe(0)
    expect(stdout).toMatch(/usage:/i)
  })

  test('an instance is stopped, started, restarted and deleted only by its typed name', async () => {
    await home.json('instance', 'create', 'other')
    await home.json('instance', 'stop', 'other')
    expect(await home.json('instance', 'show', 'other')).toMatchObject({ state: 'stopped' })
    await home.json('instance', 'start', 'other')
    await home.json('instance', 'restart', 'other', '--mode', 'immediate')
    await home.json('instance', 'reload', 'other')
    const refused = await home.run(['instance', 'delete', 'other', '--confirm', 'demo'])
    expect(refused.status).toBe(1)
    await home.json('instance', 'delete', 'other', '--confirm', 'other')
    expect((await home.json<{ name: string }[]>('instance', 'list')).map((i) => i.name)).toEqual(['demo'])
  })

  describe('processes that are killed', () => {
    test.each(['web', 'controller', 'agent', 'control-database'])(
      '%s is started again, and the instance runs on',
      async (name) => {
        const started = sql(demo.connectionString, 'SELECT pg_postmaster_start_time()')
        const pid = await home.pidOf(name)
        process.kill(pid, 'SIGKILL')
        await until(`${name} runs again`, async () => {
          const { state, processes } = await home.status()
          return state === 'running' && processes.find((p) => p.name === name)?.pid !== pid
        })
        expect(sql(demo.connectionString, 'SELECT pg_postmaster_start_time()')).toBe(started)
      },
    )

    test('a program that ends by itself is started again too', async () => {
      const pid = await home.pidOf('controller')
      process.kill(pid, 'SIGTERM')
      await until('the controller runs again', async () => {
        const { state, processes } = await home.status()
        return state === 'running' && processes.find((p) => p.name === 'controller')?.pid !== pid
      })
    })

    test('without the supervisor all run on; "up" starts a new one that takes them over', async () => {
      const before = await home.status()
      await endAtOnce(await home.pidOf('supervisor'))
      const lame = await home.status()
      expect(lame.state).toBe('degraded')
      const others = (s: typeof before) =>
        s.processes.filter((p) => p.name !== 'supervisor').map((p) => p.pid)
      expect(others(lame)).toEqual(others(before))
      await home.json('up')
      const after = await home.status()
      expect(after.state).toBe('running')
      expect(others(after)).toEqual(others(before))
      // the new one does its work
      const pid = await home.pidOf('agent')
      process.kill(pid, 'SIGKILL')
      await until(
        'the agent runs again',
        async () => (await home.status()).state === 'running' && (await home.pidOf('agent')) !== pid,
      )
    })

    test('"up" finds its processes though their records are lost', async () => {
      const before = await home.status()
      await endAtOnce(await home.pidOf('supervisor'))
      rmSync(join(home.directory, 'run'), { recursive: true })
      await home.json('up')
      const after = await home.status()
      expect(after.state).toBe('running')
      expect(after.processes.find((p) => p.name === 'control-database')?.pid).toBe(
        before.processes.find((p) => p.name === 'control-database')?.pid,
      )
      const pids = after.processes.map((p) => p.pid as number)
      for (const old of before.processes)
        if (!pids.includes(old.pid as number)) expect(alive(old.pid as number)).toBe(false)
    })
  })

  test('another port moves the console; the instance keeps its own', async () => {
    const moved = await freePorts(1)
    const { url } = await home.json<Up>(
      'up',
      '--port',
      String(moved),
      '--agent-port',
      String(base + 1),
      '--control-port',
      String(base + 2),
    )
    expect(url).toBe(`http://127.0.0.1:${moved}`)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    expect(await home.json('instance', 'show', 'demo')).toMatchObject({ port: demo.port, state: 'running' })
    expect(
      (
        await home.json<Up>(
          'up',
          '--port',
          String(base),
          '--agent-port',
          String(base + 1),
          '--control-port',
          String(base + 2),
        )
      ).url,
    ).toBe(first.url)
  })

  test('down stops Floe and leaves the instance running; up finds it again; down --instances stops it', async () => {
    const pids = (await home.status()).processes.map((p) => p.pid as number)
    const down = await home.json<{ instancesRunning: string[]; stopped: string[] }>('down')
    expect(down.instancesRunning).toEqual(['demo'])
    expect(down.stopped.sort()).toEqual(['agent', 'control-database', 'controller', 'supervisor', 'web'])
    expect(pids.filter(alive)).toEqual([])
    expect(sql(demo.connectionString, 'SELECT 1')).toBe('1')
    expect((await home.status()).state).toBe('stopped')
    const refused = await home.run(['instance', 'list', '--json'])
    expect(refused.status).toBe(1)
    expect(JSON.parse(refused.stdout).fault.code).toBe('console.unreachable')

    await home.json('up')
    expect(await home.json('instance', 'show', 'demo')).toMatchObject({ state: 'running', port: demo.port })
    const all = await home.json<{ instancesStopped: string[]; instancesRunning: string[] }>(
      'down',
      '--instances',
    )
    expect(all).toMatchObject({ instancesStopped: ['demo'], instancesRunning: [] })
    expect(() => sql(demo.connectionString, 'SELECT 1')).toThrow()
    expect((await home.json<{ stopped: string[] }>('down')).stopped).toEqual([])
  })
})
