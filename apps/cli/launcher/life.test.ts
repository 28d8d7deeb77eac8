import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { alive, freePorts, launcher, PrivateHome, until } from './private-home'

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
      process.kill(await home.pidOf('supervisor'), 'SIGKILL')
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
      process.kill(await home.pidOf('supervisor'), 'SIGKILL')
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
