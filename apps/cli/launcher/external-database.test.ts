import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueHostIdentity, makeAuthority } from '@floe/authority'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkout, freePorts, PrivateHome, type Status, until } from './private-home'

/** Of the owner of the database; the installation may put it nowhere but into one file. */
const PASSWORD = `owner-${'x9'.repeat(12)}`
const root = process.getuid?.() === 0
const prefix = execFileSync(join(checkout, 'engine/tools/engine'), ['prefix', '--variant', 'release'], {
  encoding: 'utf8',
}).trim()

/** A server of somebody else's: TLS only, SCRAM only, and a role that owns one database and may make roles. */
class OwnServer {
  readonly directory = mkdtempSync(join(tmpdir(), 'floe-external-'))
  readonly data = join(this.directory, 'pgdata')
  readonly authorityFile = join(this.directory, 'ca.pem')
  readonly foreignFile = join(this.directory, 'foreign.pem')
  readonly passwordFile = join(this.directory, 'password')
  readonly #user = root
    ? { uid: Number(execFileSync('id', ['-u', 'nobody'])), gid: Number(execFileSync('id', ['-g', 'nobody'])) }
    : {}
  readonly #options = { ...this.#user, cwd: '/', env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' } }

  constructor(readonly port: number) {}

  async make(): Promise<void> {
    const own = (file: string) =>
      this.#user.uid !== undefined && chownSync(file, this.#user.uid, this.#user.gid as number)
    own(this.directory)
    chmodSync(this.directory, 0o755)
    this.#run('initdb', [
      '-D',
      this.data,
      '-U',
      'postgres',
      '-A',
      'peer',
      '-E',
      'UTF8',
      '--locale=C.UTF-8',
      '--no-sync',
    ])
    const authority = await makeAuthority()
    const identity = await issueHostIdentity(authority, {
      hostId: '00000000-0000-4000-8000-000000000001',
      addresses: ['localhost'],
    })
    for (const name of ['server.crt', 'server.key']) {
      writeFileSync(join(this.data, name), identity, { mode: 0o600 })
      own(join(this.data, name))
    }
    writeFileSync(this.authorityFile, authority.certificate)
    writeFileSync(this.foreignFile, (await makeAuthority()).certificate)
    writeFileSync(this.passwordFile, `${PASSWORD}\n`, { mode: 0o600 })
    writeFileSync(
      join(this.data, 'pg_hba.conf'),
      'local all postgres trust\nhostssl all all all scram-sha-256\n',
    )
    this.start()
    this.sql(
      `CREATE ROLE fleet LOGIN CREATEROLE PASSWORD '${PASSWORD}'; CREATE DATABASE fleet OWNER fleet`.split(
        '; ',
      ),
    )
  }

  #run(program: string, args: string[]): void {
    execFileSync(join(prefix, 'bin', program), args, { ...this.#options, stdio: 'ignore' })
  }

  start(): void {
    const settings = {
      port: this.port,
      listen_addresses: 'localhost',
      unix_socket_directories: this.directory,
      ssl: 'on',
      fsync: 'off',
      shared_buffers: '32MB',
      log_statement: 'all',
    }
    const words = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
    this.#run('pg_ctl', [
      'start',
      '-w',
      '-D',
      this.data,
      '-l',
      join(this.directory, 'log'),
      '-o',
      words.join(' '),
    ])
  }

  stop(): void {
    this.#run('pg_ctl', ['stop', '-w', '-m', 'fast', '-D', this.data])
  }

  sql(statements: string[], database = 'postgres'): string {
    const words = statements.flatMap((statement) => ['-c', statement])
    return execFileSync(
      join(prefix, 'bin/psql'),
      ['-XAtqw', '-h', this.directory, '-p', `${this.port}`, '-U', 'postgres', '-d', database, ...words],
      { ...this.#options, encoding: 'utf8' },
    ).trim()
  }

  url(o: { host?: string; mode?: string; authority?: string } = {}): string {
    const { host = 'localhost', mode = '?sslmode=verify-full', authority = this.authorityFile } = o
    return `postgresql://fleet@${host}:${this.port}/fleet${mode}${mode ? '&' : '?'}sslrootcert=${authority}`
  }

  remove(): void {
    spawnSync(join(prefix, 'bin/pg_ctl'), ['stop', '-m', 'immediate', '-D', this.data], this.#options)
    rmSync(this.directory, { recursive: true, force: true })
  }
}

type External = Status & {
  externalControlDatabase: { address: string; state: string; because: string | null } | null
}
type Config = {
  controlDatabase: { url: string; name: string }
  consoleDirectory: string
  instancesDirectory: string
  users: { web: string; controller: string } | null
}

const home = new PrivateHome()
let base: number
let server: OwnServer
const status = () => home.json<External>('status')
const config = () => JSON.parse(readFileSync(join(home.directory, 'config.json'), 'utf8')) as Config
const ports = () => ['--port', `${base}`, '--instance-ports', `${base + 3}-${base + 6}`]

beforeAll(async () => {
  base = await freePorts(8)
  server = new OwnServer(base + 7)
  await server.make()
})
afterAll(async () => {
  await home.remove()
  server.remove()
})

/** Whether any process shows the text in its arguments or environment, looked at again and again until `done`. */
async function shownWhile(text: string, done: Promise<unknown>): Promise<string[]> {
  const shown = new Set<string>()
  let over = false
  void done.finally(() => {
    over = true
  })
  while (!over) {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
      for (const file of ['cmdline', 'environ'])
        try {
          const content = readFileSync(`/proc/${pid}/${file}`, 'utf8')
          if (content.includes(text)) shown.add(`${file} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8')}`)
        } catch {
          // gone, or another user's
        }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return [...shown]
}

const refusal = async (url: string, more = ['--control-database-password-file', server.passwordFile]) => {
  const ended = await home.run(['up', '--json', ...ports(), '--control-database', url, ...more])
  expect(existsSync(join(home.directory, 'config.json'))).toBe(false)
  expect(JSON.parse(ended.stdout).fault.hint).toBeTruthy()
  return { status: ended.status, ...(JSON.parse(ended.stdout).fault as { code: string; detail: string }) }
}

describe('a control database that Floe does not run', () => {
  test('is refused unless its server is verified in full, and no session of it begins', async () => {
    const { length } = readFileSync(join(server.directory, 'log'), 'utf8')
    for (const mode of ['', '?sslmode=require', '?sslmode=disable'])
      expect(await refusal(server.url({ mode }))).toMatchObject({ status: 2, code: 'usage.control_database' })
    const foreign = await refusal(server.url({ authority: server.foreignFile }))
    expect(foreign).toMatchObject({ status: 1, code: 'control_database.not_verified' })
    // the same address by a name that its certificate does not have
    const misnamed = await refusal(server.url({ host: '127.1' }))
    expect(misnamed).toMatchObject({ status: 1, code: 'control_database.not_verified' })
    expect(misnamed.detail).toContain('127.1')
    const said = readFileSync(join(server.directory, 'log'), 'utf8').slice(length)
    expect(said).not.toMatch(/fleet|authenticat/)
  })

  test('is refused with a password in its URL, with none at all, and with a wrong one', async () => {
    const inUrl = await home.run([
      'up',
      '--json',
      '--control-database',
      server.url().replace('@', ':hunter2@'),
    ])
    expect(inUrl.status).toBe(2)
    expect(inUrl.stdout + inUrl.stderr).not.toContain('hunter2')
    expect(await refusal(server.url(), [])).toMatchObject({ status: 2, code: 'usage.no_password' })
    const wrong = join(home.directory, 'wrong')
    writeFileSync(wrong, 'wrong\n')
    expect(await refusal(server.url(), ['--control-database-password-file', wrong])).toMatchObject({
      code: 'control_database.no_login',
    })
    expect(existsSync(join(home.directory, 'secrets/control-owner-password'))).toBe(false)
  })

  test('is used by the whole of Floe, and the owner’s password is shown by no process and in no log', {
    // builds the console where nothing has yet
    timeout: 600_000,
  }, async () => {
    const up = home.run(
      [
        'up',
        '--json',
        ...ports(),
        '--control-database',
        server.url(),
        '--control-database-password-file',
        '-',
      ],
      { input: `${PASSWORD}\n` },
    )
    expect(await shownWhile(PASSWORD, up)).toEqual([])
    const { status: ended, stdout, stderr } = await up
    expect(stderr + stdout).not.toContain(PASSWORD)
    expect(ended, stderr).toBe(0)
    const { url, setupUrl } = JSON.parse(stdout)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    expect(await (await fetch(setupUrl)).text()).toContain('Create owner')
    expect(await home.json<unknown[]>('host', 'list')).toHaveLength(1)
    expect(existsSync(join(config().instancesDirectory, 'control'))).toBe(false)
    for (const file of readdirSync(join(home.directory, 'log')))
      expect(readFileSync(join(home.directory, 'log', file), 'utf8')).not.toContain(PASSWORD)
    expect(readFileSync(join(home.directory, 'config.json'), 'utf8')).not.toContain(PASSWORD)
  })

  test('is no process of Floe’s; status shows it and whether it can be reached', async () => {
    const { state, processes, externalControlDatabase } = await status()
    expect(state).toBe('running')
    expect(processes.map((p) => p.name)).toEqual(['supervisor', 'agent', 'controller', 'web'])
    expect(externalControlDatabase).toEqual({
      address: `localhost:${server.port}/fleet`,
      state: 'reachable',
      because: null,
    })
    expect((await home.run(['status'])).stdout).toContain('not run by Floe, reachable')
  })

  test('lets web and controller in over TLS, each with a password of its own that nobody else can read', () => {
    const sessions = server.sql([
      `SELECT usename, bool_and(ssl) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)
        WHERE datname = 'fleet' GROUP BY 1 ORDER BY 1`,
    ])
    expect(sessions.split('\n')).toEqual(['floe_controller|t', 'floe_web|t'])
    const verifiers = server.sql([
      `SELECT left(rolpassword, 14) FROM pg_authid WHERE rolname LIKE 'floe_%' AND NOT rolsuper`,
    ])
    expect(verifiers.split('\n')).toEqual(['SCRAM-SHA-256$', 'SCRAM-SHA-256$'])
    const { consoleDirectory, users } = config()
    const file = {
      owner: join(home.directory, 'secrets/control-owner-password'),
      web: join(consoleDirectory, 'web/secrets/control-web-password'),
      controller: join(consoleDirectory, 'controller/secrets/control-controller-password'),
    }
    expect(statSync(file.owner).mode & 0o777).toBe(0o600)
    const log = readFileSync(join(server.directory, 'log'), 'utf8')
    for (const secret of [file.web, file.controller])
      expect(log).not.toContain(readFileSync(secret, 'utf8').trim())
    if (users === null) return
    const readable = (by: string) => {
      const uid = Number(execFileSync('id', ['-u', by]))
      const gid = Number(execFileSync('id', ['-g', by]))
      return Object.keys(file).filter(
        (name) => spawnSync('cat', [file[name as keyof typeof file]], { uid, gid, cwd: '/' }).status === 0,
      )
    }
    expect(readable(users.web)).toEqual(['web'])
    expect(readable(users.controller)).toEqual(['controller'])
    expect(readable('nobody')).toEqual([])
  })

  test('stays what it is when up is run again, with or without its URL, and nothing is restarted', async () => {
    const pids = (await status()).processes.map((p) => p.pid)
    const before = config()
    for (const more of [[], ['--control-database', server.url()]])
      expect((await home.run(['up', '--json', ...more])).status).toBe(0)
    expect(config()).toEqual(before)
    expect((await status()).processes.map((p) => p.pid)).toEqual(pids)
  })

  test('is refused to another installation', async () => {
    const other = new PrivateHome()
    try {
      const { stdout } = await other.run([
        ...['up', '--json', '--port', `${base + 3}`, '--control-database', server.url()],
        ...['--control-database-password-file', server.passwordFile],
      ])
      expect(JSON.parse(stdout).fault).toMatchObject({ code: 'control_database.of_another' })
    } finally {
      await other.remove()
    }
  })

  test('that is away is told by status, and is used again when it is back', async () => {
    server.stop()
    const away = await status()
    expect(away.state).toBe('degraded')
    expect(away.externalControlDatabase).toMatchObject({ state: 'unreachable' })
    expect(away.externalControlDatabase?.because).toContain('could not reach')
    server.start()
    await until('everything runs again', async () => (await status()).state === 'running')
  })

  test('is left alone by down, and an emptied one is not taken for it', async () => {
    const down = await home.json<{ stopped: string[] }>('down')
    expect(down.stopped.sort()).toEqual(['agent', 'controller', 'supervisor', 'web'])
    expect((await status()).externalControlDatabase?.state).toBe('reachable')
    expect(server.sql(['SELECT count(*) FROM host'], 'fleet')).toBe('1')
    server.sql(['DROP DATABASE fleet WITH (FORCE)', 'CREATE DATABASE fleet OWNER fleet'])
    const { stdout } = await home.run(['up', '--json'])
    expect(JSON.parse(stdout).fault).toMatchObject({ code: 'control_database.emptied' })
    expect((await status()).state).toBe('stopped')
  })
})
